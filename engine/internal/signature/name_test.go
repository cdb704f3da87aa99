// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
)

// spellings are what one function is called by different compilers, builds and tools.
var spellings = map[string][]string{
	"f":                                     {"f", "f(int)", "_Z1fi", "_ZL1fi", "_Z1fi.constprop.0", "f.part.0.cold", "f(int) (.cold)", "f(int) [clone .isra.0]", "f.llvm.1234", "f.lto_priv.0", "f@VERS_1", "int f<int>(int)", "f[abi:cxx11](int)", "static void f(int)", "f.1234", "non-virtual thunk to f()"},
	"ns::A::f":                              {"ns::A::f(int) const", "ns::A<int>::f<char>(int) &&", "void ns::A<std::pair<int, (ns::E)1> >::f<&ns::A<int>::operator-> >()", "_ZNK2ns1A1fEi", "virtual thunk to ns::A::f()", "decltype(g(1)) ns::A::f<int>(int)", "void (*ns::A::f<int>(int))(char)", "std::enable_if<(1>2), int>::type ns::A::f<int>(int)"},
	"A::operator<":                          {"bool A::operator< <int>(A const&)", "A::operator<<int>(int)", "A::operator<"},
	"A::operator<<":                         {"A::operator<<(int)", "A::operator<< <int>(int)", "A::operator<<<int>(int)"},
	"A::operator()":                         {"A::operator()(int) const", "A::operator()<int>(int)"},
	"A::operator->":                         {"A::operator->()"},
	"A::operator bool":                      {"A::operator bool() const", "A<int>::operator bool()"},
	"A::~A":                                 {"A::~A()", "A<int>::~A()"},
	"operator new":                          {"operator new(unsigned long)", "_Znwm"},
	`operator""_x`:                          {`operator"" _x(char)`, `operator""_x(char)`},
	"main::{lambda}":                        {"main::{lambda(int)#1}::operator()(int) const", "main::'lambda'(int)::operator()(int) const", "main::'lambda0'(int)::operator()(int) const", "main::$_0::operator()(int) const", "main()::{lambda()#2}::_FUN()", "main::$_1::__invoke(int)", "main::<lambda_0123456789abcdef>::operator()", "main()::<lambda(int)>::operator()"},
	"(anonymous namespace)::f":              {"(anonymous namespace)::f(int)", "{anonymous}::f", "`anonymous namespace'::f", "`anonymous-namespace'::f", "_ZN12_GLOBAL__N_11fEi", "<unnamed>::f"},
	"std::vector::push_back":                {"std::vector<int, std::allocator<int> >::push_back(int&&)", "std::__1::vector<int>::push_back[abi:v160006](int)", "std::__debug::vector<int>::push_back"},
	"std::basic_string::append":             {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)", "std::string::append(char const*)", "std::__1::basic_string<char>::append"},
	"absl::Mutex::Lock":                     {"absl::lts_20230125::Mutex::Lock()", "absl::Mutex::Lock()"},
	"krate::f":                              {"krate::f::h0123456789abcdef", "_ZN5krate1f17h0123456789abcdefE", "_RNvCs1234_5krate1f", "krate::f::<i32>"},
	"krate::f::{closure}":                   {"krate::f::{{closure}}", "krate::f::{closure#0}", "krate::f::{closure#3}"},
	"<krate::A as core::fmt::Display>::fmt": {"<krate::A<T> as core::fmt::Display>::fmt", "<krate::A<u8> as core::fmt::Display>::fmt"},
	"core::option::Option::unwrap":          {"core::option::Option<T>::unwrap", "<core::option::Option<u8>>::unwrap"},
	"strlen":                                {"__strlen_avx2", "__strlen_sse2", "__strlen_evex", "strlen", "__GI_strlen"},
	"memcpy":                                {"__memcpy_avx_unaligned_erms", "__memmove_avx_unaligned_erms", "memcpy", "memmove", "__memcpy_chk"},
	"poll":                                  {"poll", "__poll", "__GI___poll", "__poll_nocancel", "__libc_poll"},
	"printf":                                {"printf", "_IO_printf", "__printf_chk"},
	"free":                                  {"free", "__libc_free", "__GI___libc_free", "cfree", "__interceptor_free"},
	"WinMain":                               {"WinMain", "_WinMain@16"},
	"main._omp_fn":                          {"main._omp_fn.0", "main._omp_fn.12"},
	"-[Foo bar:]":                           {"-[Foo bar:]"},
	"main.f.func":                           {"main.f.func1", "main.f.func2", "main.f.func1-range1"},
	"ns::A::g":                              {"?g@?$A@H@ns@@QEAAXXZ", "?g@?$A@VB@@@ns@@QEBA_NPEAD@Z", "ns::A<int>::g(void)", "ns::A<class B>::g(char *) const", "[thunk]: ns::A<int>::g`adjustor{16}'(void)"},
	"f::{lambda}":                           {"??R<lambda_1>@?1??f@@YAHXZ@QEBA@XZ", "`f(void)'::`2'::<lambda_1>::operator()(void) const", "f::__l2::<lambda_1>::operator()", "`f'::`2'::<lambda_1>::<lambda_invoker_cdecl>(int)"},
	"":                                      {"", "<name omitted>", "::", "()", "<<<<"},
}

// newSpellings are those that the second version of signatures makes one.
var newSpellings = map[string][]string{
	"f":              {"f.__part.1", "f.eh", "f.cold.bolt.org.0", "f.bolt.org.0.cold.1", "f$constprop$0", "f$part$0", "f$3fa91b07c2d4e586", "f.memprof.1", "f.resume", "f$catch$0", "f(int) (.__part.2)", "f.__uniq.123.llvm.456"},
	"ns::f":          {"ns::f(int) (.__part.1)", "_ZN2ns1fEi.__part.1", "_ZN2ns1fEi.cold.__part.3", "ns::f$isra$0"},
	"m::f::{lambda}": {"m::f(int)::<lambda>::operator()", "m::f(int) const::<lambda>::operator()", "m::f::<lambda>::operator()", "m::f(int)::'lambda'(int)::operator()(int) const (.__part.1)", "m::f(int)::$_0::operator()(int) const", "m::f(int)::{lambda(auto:1)#1}::operator()<int>(int) const"},
	"{lambda}":       {"<lambda>::operator()", "<lambda>::operator()::<lambda>::operator()"},
	"Foo$bar":        {"Foo$bar"},
	"m::(anonymous namespace)::f::{lambda}": {
		"m::(anonymous namespace)::f::<lambda>::operator()", "m::(anonymous namespace)::f::<lambda>::operator()::<lambda>::operator()",
		"m::(anonymous namespace)::f(int)::$_0::operator()(int) const", "m::(anonymous namespace)::f(int)::$_0::operator()(int) const::'lambda'(int)::operator()(int) const",
	},
}

// dSpellings are names of D's.
var dSpellings = map[string][]string{
	"d.C.destroy":        {"d.C.destroy(int)", "d.C.destroy(int) const", "d.C!(int).destroy!(const(char)[], 3)()"},
	"std.file.split.get": {"std.file.split(int, d.C).get()"},
	"d.f.{lambda}":       {"d.f(int).__lambda2(int)", "d.f().__funcliteral1()"},
	"D main":             {"D main"},
}

// goSpellings are names of Go's, which only the file tells from those of C.
var goSpellings = map[string][]string{
	"main.f":                   {"main.f", "main.f[...]", "main.f[go.shape.int]", "main.f.abi0"},
	"main.cold":                {"main.cold"},
	"main.(*T).M":              {"main.(*T).M", "main.(*T[...]).M", "main.(*T).M-fm"},
	"main.f.func":              {"main.f.func1", "main.f.func12", "main.f.func1.gowrap2"},
	"main.f.func.func":         {"main.f.func1.func2"},
	"main.init.func":           {"main.glob..func1", "main.init.func1"},
	"gopkg.in/yaml.v3.Marshal": {"gopkg.in/yaml%2ev3.Marshal"},
}

func TestSpellingsOfOneFunctionAreOneName(t *testing.T) {
	check := func(want, file string, names []string) {
		for _, n := range names {
			if got := nameOf(n, file, false).shown; got != want {
				t.Errorf("%q is %q, expected %q", n, got, want)
			}
		}
	}
	for want, names := range spellings {
		if want == "main.f.func" {
			check(want, "f.go", names)
			continue
		}
		check(want, "", names)
	}
	for want, names := range goSpellings {
		check(want, "f.go", names)
	}
	for want, names := range newSpellings {
		check(want, "", names)
	}
	for want, names := range dSpellings {
		check(want, "f.d", names)
	}
}

// TestNamesOfOtherFunctionsDiffer has names that must not become one.
func TestNamesOfOtherFunctionsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, n := range []string{
		"f", "g", "A::f", "B::f", "ns::A::f", "f_1", "f2", "operator+(A, A)", "operator-(A, A)", "A::operator[](int)", "A::operator()(int)",
		"A::operator int()", "A::operator bool()", "A::A()", "A::~A()", "<A as T>::f", "<B as T>::f", "<A as U>::f", "f::{{closure}}",
		"f::{lambda()#1}::operator()() const", "main.part", "strlen", "strnlen", "__x64_sys_read", "__ia32_sys_read", "std::f", "absl::f",
	} {
		got := nameOf(n, "", false).shown
		if of, isKnown := seen[got]; isKnown || got == "" {
			t.Errorf("%q and %q are both %q", of, n, got)
		}
		seen[got] = n
	}
}

// pinned is what the tables of each version were when it was made.
var pinned = map[int]string{1: "f97dd3a1402ae221", 2: "865e2410092bbdb3"}

// TestTablesAreThoseOfTheVersion fails where signatures become others and the version
// stays.
func TestTablesAreThoseOfTheVersion(t *testing.T) {
	for version, want := range pinned {
		h := sha256.New()
		fmt.Fprintln(h, version, MaxFrames, maxCalls, minRecursion, funcname.Braces, funcname.Unsaid, funcname.InlineSpaces, abbreviations, suffixes, interceptors, processors,
			reservedSuffixes, aliases, goWrappers, goSuffixes, startup, plumbing, rustLibrary, systemModules)
		for _, m := range machinery {
			fmt.Fprintln(h, m.kind.is, m.kind.strength, m.names)
		}
		if version > trace.FirstSignatureVersion {
			fmt.Fprintln(h, newSuffixes, newStartup, funcname.DLambdas)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != want {
			t.Errorf("the tables are %s, not the %s of version %d: a change of them is another Version", got, want, version)
		}
	}
	one := newSignature(trace.FirstSignatureVersion, []string{"[abort]", "f", "main"})
	if got := one.String(); got != "unwindd-1:a726a71462bf24f9" {
		t.Error(got)
	}
}

// TestLongNamesTakeNoTime has names that are nothing but brackets.
func TestLongNamesTakeNoTime(t *testing.T) {
	for _, part := range []string{"<", "(", "(*", "{", "[", "<<", "a<b>::", "operator<", "<a as ", "`", "'", "::", " ", "a ", "<'a", "_Z"} {
		nameOf(strings.Repeat(part, 1<<20/len(part)), "", false)
		nameOf(strings.Repeat(part, 1<<20/len(part)), "f.go", false)
	}
}

func FuzzName(f *testing.F) {
	for want, names := range spellings {
		f.Add(want, "")
		for _, n := range names {
			f.Add(n, "")
		}
	}
	for _, names := range goSpellings {
		for _, n := range names {
			f.Add(n, "f.go")
		}
	}
	f.Fuzz(func(t *testing.T, name, file string) {
		got := nameOf(name, file, false).shown
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q of %q", got, name)
		}
		if limit := 8*len(name) + 64; len(got) > limit && !strings.HasPrefix(strings.TrimSpace(name), "_") {
			t.Errorf("%d bytes of %d", len(got), len(name))
		}
	})
}
