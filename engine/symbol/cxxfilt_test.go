// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// mangledNames are the mangled names of an ELF file, without versions.
func mangledNames(t *testing.T, path string) []string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	static, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	var names []string
	for _, s := range append(static, dynamic...) {
		if name := StripVersion(s.Name); IsMangled(name) && !strings.ContainsAny(name, "\n@") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compareNames returns how many names differ from LLVM's, and how many were
// left as they are.
func compareNames(t *testing.T, path string, minimum int, of func(theirs string) string) (differ, left int) {
	t.Helper()
	names := mangledNames(t, path)
	if len(names) < minimum {
		t.Fatalf("%s has %d mangled names, expected %d or more", path, len(names), minimum)
	}
	for i, want := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		switch got := DemangleLLVM(names[i]); got {
		case of(want):
		case names[i]:
			left++
		default:
			if differ++; differ <= 5 {
				t.Logf("%s:\n got %s\nwant %s", names[i], got, want)
			}
		}
	}
	t.Logf("%s: %d names, %d differ, %d left as they are", filepath.Base(path), len(names), differ, left)
	return differ, left
}

// equalBothTools holds names against both tools, each style against its own, and
// those that stacks have against what both tools write alike.
func equalBothTools(t *testing.T, what string, names []string, minimum int) {
	t.Helper()
	if len(names) < minimum {
		t.Fatalf("%s has %d mangled names, expected %d or more", what, len(names), minimum)
	}
	llvm, gnu := oracle.Filter(t, "llvm-cxxfilt-22", names), oracle.Filter(t, "c++filt", names)
	wrong, alike, own := 0, 0, 0
	for i, name := range names {
		type compared struct{ style, got, want string }
		list := []compared{{"LLVM", DemangleLLVM(name), llvm[i]}, {"GNU", DemangleGNU(name), gnu[i]}}
		stack := Demangle(name)
		if llvm[i] == gnu[i] && llvm[i] != name {
			alike++
			list = append(list, compared{"stack", stack, llvm[i]})
		}
		if stack != llvm[i] {
			own++
		}
		for _, c := range list {
			if c.got != c.want {
				if wrong++; wrong <= 5 {
					t.Errorf("%s, %s:\n got %s\nwant %s", c.style, name, c.got, c.want)
				}
			}
		}
	}
	t.Logf("%s: %d names, of which both tools write %d alike; %d wrong; stacks have %d otherwise than LLVM", what, len(names), alike, wrong, own)
}

func asItIs(name string) string { return name }

var (
	hashPattern   = regexp.MustCompile(`::h[0-9a-f]{16}`)
	escapePattern = regexp.MustCompile(`\$u([0-9a-f]+)\$`)
)

// readLegacy reads the escapes of Rust's legacy mangling in a name that was
// demangled as one of C++, and leaves out its hash.
func readLegacy(name string) string {
	if !hashPattern.MatchString(name) {
		return name
	}
	name = hashPattern.ReplaceAllString(name, "")
	for _, c := range []string{"_$LT$=$LT$", "_$u=$u", "$LT$=<", "$GT$=>", "$RF$=&", "$BP$=*", "$LP$=(", "$RP$=)", "$C$=,", "$SP$=@"} {
		from, to, _ := strings.Cut(c, "=")
		name = strings.ReplaceAll(name, from, to)
	}
	name = escapePattern.ReplaceAllStringFunc(name, func(s string) string {
		n, _ := strconv.ParseUint(s[2:len(s)-1], 16, 32)
		return string(rune(n))
	})
	return strings.ReplaceAll(strings.ReplaceAll(name, "..", "::"), "_::_", "_")
}

// libraryOf is the shared library of a soname that a program is linked with.
func libraryOf(t *testing.T, program, soname string) string {
	t.Helper()
	path := oracle.Tool(t, program)
	out := oracle.Run(t, "ldd", path)
	for _, line := range strings.Split(out, "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[0], soname) {
			return fields[2]
		}
	}
	t.Fatalf("%s is not linked with %s:\n%s", path, soname, out)
	return ""
}

func TestNamesOfLibstdcxxEqualBothTools(t *testing.T) {
	path := libraryOf(t, "gdb", "libstdc++.so")
	equalBothTools(t, path, mangledNames(t, path), 3000)
}

// All names of a program by two compilers: of its symbols, and of all functions in
// its debug information, which have far more.
func TestNamesOfProgramsEqualBothTools(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for a while")
	}
	source := oracle.Beside(t, "workloads/deepcpp.cpp")[0]
	for _, compiler := range []string{"g++", "clang++-22"} {
		out := filepath.Join(t.TempDir(), compiler)
		oracle.Run(t, compiler, "-std=c++17", "-O0", "-g", "-gdwarf-4", "-pthread", "-o", out, source)
		names := append(mangledNames(t, out), linkageNames(t, out)...)
		slices.Sort(names)
		equalBothTools(t, compiler, slices.Compact(names), 6000)
	}
}

// linkageNames are those of debug information.
func linkageNames(t *testing.T, path string) []string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r := d.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return names
		}
		if name, ok := e.Val(dwarf.AttrLinkageName).(string); ok && IsMangled(name) {
			names = append(names, name)
		}
	}
}

// All names of Rust's standard library, in both manglings.
func TestNamesOfRustProgramsEqualLLVMs(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "program.rs")
	text := `
use std::collections::HashMap;
use std::fmt::Debug;
struct Wrapper<T, const N: usize, const C: char>([T; N]);
trait Speak { fn speak(&self) -> String; }
impl<T: Debug, const N: usize, const C: char> Speak for Wrapper<T, N, C> {
    #[inline(never)]
    fn speak(&self) -> String { let f = |x: &T| format!("{:?}{}", x, C); self.0.iter().map(f).collect() }
}
mod größe { #[inline(never)] pub fn zähle(f: &dyn for<'a> Fn(&'a str) -> &'a str) -> usize { f("x").len() } }
#[inline(never)]
fn call(f: extern "C" fn(i32, *const u8) -> bool, g: unsafe fn(&mut [u8; 3])) -> bool { let _ = g; f(1, std::ptr::null()) }
extern "C" fn c(_: i32, _: *const u8) -> bool { true }
unsafe fn u(_: &mut [u8; 3]) {}
fn main() {
    let mut m: HashMap<String, Box<dyn Speak + Send>> = HashMap::new();
    m.insert("a".into(), Box::new(Wrapper::<(i8, ()), 2, '\''>([(1, ()), (2, ())])));
    for (k, v) in &m { println!("{} {}", k, v.speak()); }
    println!("{} {}", größe::zähle(&|s| s), call(c, u));
    std::thread::spawn(|| std::process::exit((|| 0)())).join().unwrap();
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mangling := range []string{"v0", "legacy"} {
		t.Run(mangling, func(t *testing.T) {
			out := filepath.Join(dir, mangling)
			args := []string{"-o", out, source, "-C", "symbol-mangling-version=" + mangling}
			if mangling == "legacy" {
				args = append(args, "-Z", "unstable-options")
			}
			// Older compilers have v0, and newer ones legacy, for nightly only.
			oracle.With{Env: []string{"RUSTC_BOOTSTRAP=1"}}.Run(t, "rustc", args...)
			of := asItIs
			if mangling == "legacy" {
				of = readLegacy
			}
			if differ, left := compareNames(t, out, 300, of); differ > 0 || left > 0 {
				t.Errorf("%d differ and %d were left as they are, want none", differ, left)
			}
		})
	}
}

// Names of large libraries.
func TestNamesOfLargeLibrariesEqualBothTools(t *testing.T) {
	proof.Only(t)
	path := libraryOf(t, "llvm-symbolizer-22", "libLLVM")
	equalBothTools(t, path, mangledNames(t, path), 40000)
	path = libraryOf(t, "clang-22", "libclang-cpp")
	equalBothTools(t, path, mangledNames(t, path), 40000)
}

func TestQualifiedNamesInExpressions(t *testing.T) {
	tests := []struct{ name, want string }{
		{"_ZN4llvm4yaml7yamlizeIfEENSt9enable_ifIXsr16has_ScalarTraitsIT_EE5valueEvE4typeERNS0_2IOERS3_bRNS0_12EmptyContextE",
			"std::enable_if<has_ScalarTraits<float>::value, void>::type llvm::yaml::yamlize<float>(llvm::yaml::IO&, float&, bool, llvm::yaml::EmptyContext&)"},
		{"_Z1fIiENSt9enable_ifIXaantsr1AIT_EE1xsr1B1CIS1_E1DE1yEvE4typeES1_",
			"std::enable_if<!A<int>::x && B::C<int>::D::y, void>::type f<int>(int)"},
		{"_ZN1A3useIiEENSt9enable_ifIXsr3stdE11is_signed_vIT_EEiE4typeES2_", "std::enable_if<std::is_signed_v<int>, int>::type A::use<int>(int)"},
		{"_ZN1X4usr1Ev", "X::usr1()"}, // an identifier that looks like the operator
	}
	var names []string
	for _, test := range tests {
		names = append(names, test.name)
		if got := Demangle(test.name); got != test.want {
			t.Errorf("Demangle(%q) = %q, want %q", test.name, got, test.want)
		}
	}
	for i, theirs := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		if theirs != tests[i].want {
			t.Errorf("llvm-cxxfilt says %q of %s, the table %q", theirs, names[i], tests[i].want)
		}
	}
}

// What gcc writes for a qualified name in std, LLVM does not read, and binutils do.
func TestNamesThatLLVMDoesNotRead(t *testing.T) {
	names := []string{
		"_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_",
		"_ZGTtNKSt11logic_error4whatEv",
	}
	gnu := oracle.Filter(t, "c++filt", names)
	for i, want := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		if got := DemangleLLVM(names[i]); got != names[i] || want != names[i] {
			t.Errorf("DemangleLLVM(%q) = %q, llvm-cxxfilt says %q", names[i], got, want)
		}
		if got := DemangleGNU(names[i]); got != gnu[i] || got == names[i] {
			t.Errorf("DemangleGNU(%q) = %q, c++filt says %q", names[i], got, gnu[i])
		}
	}
}

func TestRustNames(t *testing.T) {
	tests := []struct{ name, want string }{
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_RNCNvC1a1f0", "a::f::{closure#0}"},
		{"_RNCNCNvC1a1f0s_0", "a::f::{closure#0}::{closure#1}"},
		{"_RNvNCNvC1a1f023___RUST_STD_INTERNAL_VAL", "a::f::{closure#0}::__RUST_STD_INTERNAL_VAL"},
		{"_RINvC1a1fuE", "a::f::<()>"},
		{"_RINvC1a1fTaEE", "a::f::<(i8,)>"},
		{"_RINvC1a1fRL_eQhE", "a::f::<&str, &mut u8>"},
		{"_RINvC1a1fAhj3_E", "a::f::<[u8; 3]>"},
		{"_RINvC1a1fKln5_Kb1_Kc27_E", `a::f::<-5, true, '\''>`},
		{"_RINvC1a1fFG_UKCRL0_eEuE", `a::f::<for<'a> unsafe extern "C" fn(&'a str)>`},
		{"_RINvC1a1fDNtC1b1Tp4ItemhEL_E", "a::f::<dyn b::T<Item = u8>>"},
		{"_RNvXC1aNtB2_1SNtC1b1T1m", "<a::S as b::T>::m"},
		{"_RNvMC1aINtB2_1ShE1m", "<a::S<u8>>::m"},
		{"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y", "utf8_idents::საჭმელად_გემრიელი_სადილი"},
		{"_RNvC1a1f.llvm.77", "a::f (.llvm.77)"},
		// Not of the mangling.
		{"_RNvC1a", "_RNvC1a"}, {"_R1NvC1a1f", "_R1NvC1a1f"}, {"_RNvC1a9f", "_RNvC1a9f"}, {"_RB_", "_RB_"},
		{"_RINvC1a1fKb2_E", "_RINvC1a1fKb2_E"}, {"_RINvC1a1fRL0_eE", "_RINvC1a1fRL0_eE"}, {"_RNvC1a1fX", "_RNvC1a1fX"},
	}
	for _, test := range tests {
		if got := Demangle(test.name); got != test.want {
			t.Errorf("Demangle(%q) = %q, want %q", test.name, got, test.want)
		}
	}
	var names, wants []string
	for _, test := range tests {
		names, wants = append(names, test.name), append(wants, test.want)
	}
	for i, theirs := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		if theirs != wants[i] {
			t.Errorf("llvm-cxxfilt says %q of %s, the table %q", theirs, names[i], wants[i])
		}
	}
}

// GNU style is that of binutils.
func TestGNUStyleEqualsCxxfilt(t *testing.T) {
	names := []string{"_Z1fi", "_ZSt4sortISt6vectorIS0_IiEEEvT_S3_", "_Z3foov.cold", "_Z3fooi.part.0.cold", "_ZTV3foo", "_ZStlsIcEvT_"}
	for i, want := range oracle.Filter(t, "c++filt", names) {
		if got := DemangleGNU(names[i]); got != want {
			t.Errorf("DemangleGNU(%q) = %q, c++filt says %q", names[i], got, want)
		}
	}
}

func TestConstructorsOfTypesWithoutANameEqualLLVMs(t *testing.T) {
	names := []string{
		"_ZN13ImportProjectUt_D1Ev", "_ZN1fUt0_C2Ev", "_ZZ1fvENUlvE_D1Ev", "_ZZ1fvENUliE0_C1Ev", "_ZZ1fvENUliE0_C1EOS_",
		"_ZZ1fvENUt_C1Ev", "_ZZN1A1BEvENUlvE_D2Ev", "_ZZN1A1BEvENUliE1_C2ERKS0_", "_ZN1AIN1BUt_EEC1Ev", "_ZN1BUt_C1IiEET_", "_ZN1BUt_5UnionD1Ev",
		"_ZN13ImportProjectUt_D2Ev.cold", "_ZNSt5_C_Ul1xEv",
	}
	for i, want := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		if got := DemangleLLVM(names[i]); got != want {
			t.Errorf("DemangleLLVM(%q) = %q, llvm-cxxfilt says %q", names[i], got, want)
		}
	}
	if got, want := Demangle(names[0]), "ImportProject::'unnamed'::~'unnamed'()"; got != want {
		t.Errorf("Demangle(%q) = %q, want %q", names[0], got, want)
	}
}
