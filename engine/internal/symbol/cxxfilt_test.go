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

// compareNames holds names against what a tool makes of them. None may be left as it
// is that the tool reads, and few may differ: docs/differences.md has the classes.
func compareNames(t *testing.T, what, tool string, names []string, minimum int, ours, alike func(name string) string) {
	t.Helper()
	if len(names) < minimum {
		t.Fatalf("%s has %d mangled names, expected %d or more", what, len(names), minimum)
	}
	differ, unread := 0, 0
	for i, want := range oracle.Filter(t, tool, names) {
		switch got := ours(names[i]); {
		case want == names[i] && got != want:
			unread++
		case alike(got) == alike(want):
		case got == names[i]:
			t.Errorf("%s is left as it is, %s reads it as %s", got, tool, want)
		default:
			if differ++; differ <= 5 {
				t.Logf("%s:\n got %s\nwant %s", names[i], got, want)
			}
		}
	}
	t.Logf("%s: %d names, %d differ from %s, which does not read %d", what, len(names), differ, tool, unread)
	if differ*50 > len(names) {
		t.Errorf("%s: %d of %d names differ from %s, expected at most 2%%", what, differ, len(names), tool)
	}
}

// compareWithBoth holds names against LLVM's tools and against those of binutils, which
// leave out blanks after empty packs.
func compareWithBoth(t *testing.T, what string, names []string, minimum int) {
	t.Helper()
	blanks := func(name string) string { return strings.ReplaceAll(name, " ", "") }
	compareNames(t, what, "llvm-cxxfilt-22", names, minimum, Demangle, asItIs)
	compareNames(t, what, "c++filt", names, minimum, DemangleGNU, blanks)
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

func TestNamesOfLibstdcxx(t *testing.T) {
	path := libraryOf(t, "gdb", "libstdc++.so")
	compareWithBoth(t, path, mangledNames(t, path), 3000)
}

// All names of a program by two compilers: of its symbols, and of all functions in
// its debug information, which have far more.
func TestNamesOfPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for a while")
	}
	source := oracle.Beside(t, "workloads/deepcpp.cpp")[0]
	for _, compiler := range []string{"g++", "clang++-22"} {
		out := filepath.Join(t.TempDir(), compiler)
		oracle.Run(t, compiler, "-std=c++17", "-O0", "-g", "-gdwarf-4", "-pthread", "-o", out, source)
		names := append(mangledNames(t, out), linkageNames(t, out)...)
		slices.Sort(names)
		compareWithBoth(t, compiler, slices.Compact(names), 6000)
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
func TestNamesOfRustPrograms(t *testing.T) {
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
			alike := asItIs
			if mangling == "legacy" {
				alike = readLegacy
			}
			compareNames(t, mangling, "llvm-cxxfilt-22", mangledNames(t, out), 300, Demangle, alike)
		})
	}
}

// Names of large libraries.
func TestNamesOfLargeLibraries(t *testing.T) {
	proof.Only(t)
	path := libraryOf(t, "llvm-symbolizer-22", "libLLVM")
	compareWithBoth(t, path, mangledNames(t, path), 40000)
	path = libraryOf(t, "clang-22", "libclang-cpp")
	compareWithBoth(t, path, mangledNames(t, path), 40000)
}

// The smallest names of each class in which the library differs from the tools, so that
// docs/differences.md and docs/upstream.md are looked at once it does not.
func TestNamesThatDifferFromTheTools(t *testing.T) {
	tests := []struct{ name, ours, llvm string }{
		{"_ZGTtnam", "transaction clone for operator new[](unsigned long)", "_ZGTtnam"},
		{"_ZSt9__fill_a1IPbbEN9__gnu_cxx11__enable_ifIXsrSt11__is_scalarIT0_E7__valueEvE6__typeET_S8_RKS4_",
			"__gnu_cxx::__enable_if<std::__is_scalar<bool>::__value, void>::__type std::__fill_a1<bool*, bool>(bool*, bool*, bool const&)",
			"_ZSt9__fill_a1IPbbEN9__gnu_cxx11__enable_ifIXsrSt11__is_scalarIT0_E7__valueEvE6__typeET_S8_RKS4_"},
		{"_ZN4llvm4yaml7yamlizeIfEENSt9enable_ifIXsr16has_ScalarTraitsIT_EE5valueEvE4typeERNS0_2IOERS3_bRNS0_12EmptyContextE",
			"std::enable_if<has_ScalarTraits<float>::value, void>::type llvm::yaml::yamlize<float>(llvm::yaml::IO&, has_ScalarTraits&, bool, llvm::yaml::EmptyContext&)",
			"std::enable_if<has_ScalarTraits<float>::value, void>::type llvm::yaml::yamlize<float>(llvm::yaml::IO&, float&, bool, llvm::yaml::EmptyContext&)"},
		{"_ZN13ImportProjectUt_D1Ev", "ImportProject::'unnamed'::~'unnamed'()", "ImportProject::'unnamed'::~()"},
		{"_ZSt9use_facetIKSt5ctypeIcEERKT_RKSt6locale", "std::ctype<char> const& std::use_facet<std::ctype<char> const>(std::locale const&)",
			"std::ctype<char> const const& std::use_facet<std::ctype<char> const>(std::locale const&)"},
		{"_Z1fIiJEEvRSt5tupleIJT_DpT0_EE", "void f<int>(std::tuple<int, >&)", "void f<int>(std::tuple<int>&)"},
	}
	names := make([]string, len(tests))
	for i, test := range tests {
		names[i] = test.name
		if got := Demangle(test.name); got != test.ours {
			t.Errorf("Demangle(%q) = %q, want %q", test.name, got, test.ours)
		}
	}
	for i, theirs := range oracle.Filter(t, "llvm-cxxfilt-22", names) {
		if theirs != tests[i].llvm {
			t.Errorf("llvm-cxxfilt says %q of %s, the table %q", theirs, names[i], tests[i].llvm)
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
