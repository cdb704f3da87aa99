// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// cases are names of each class in which tools, or the library that was once used,
// differ. Empty: the tool leaves the name as it is.
var cases = []struct{ what, name, llvm, gnu, abi string }{
	{"a pack among template arguments of an expression", "_Z1fIbJcEENSt9enable_ifIX1vIT_DpT0_EEiE4typeEDpOS2_",
		"std::enable_if<v<bool, char>, int>::type f<bool, char>(char&&)", "std::enable_if<v<bool, char>, int>::type f<bool, char>(char&&)", "="},
	{"an empty pack behind other arguments", "_Z1gILm0ERKlJEERT0_R1BIXT_EJS2_DpT1_EE",
		"long const& g<0ul, long const&>(B<0ul, long const&>&)", "long const& g<0ul, long const&>(B<0ul, long const&>&)", "="},
	{"an empty pack before the end", "_ZN1AI1BI1CJEEJEE1fEv", "A<B<C>>::f()", "A<B<C>>::f()", "="},
	{"a pack of packs", "_Z1fIJicEEvDp1AIJT_EE", "void f<int, char>(A<int>, A<char>)", "void f<int, char>(A<int>, A<char>)", "="},
	{"the result of the function around a lambda", "_Z3useIZ1fIlEvT_EUlliE_EvS1_",
		"void use<void f<long>(long)::'lambda'(long, int)>(long)", "void use<f<long>(long)::{lambda(long, int)#1}>(f<long>(long)::{lambda(long, int)#1})",
		"void use<void f<long>(long)::'lambda'(long, int)>(void f<long>(long)::'lambda'(long, int))"},
	{"a generic lambda in a template", "_ZZ1fIlEvT_ENKUlS0_iE0_clIiEEDaS0_i",
		"auto void f<long>(long)::'lambda0'(long, int)::operator()<int>(long, int) const", "auto f<long>(long)::{lambda(auto:1, int)#2}::operator()<int>(int, int) const",
		"auto void f<long>(long)::'lambda0'(auto, int)::operator()<int>(int, int) const"},
	{"abbreviations of std", "_ZNSs4copyERSo", "std::string::copy(std::ostream&)",
		"std::basic_string<char, std::char_traits<char>, std::allocator<char> >::copy(std::basic_ostream<char, std::char_traits<char> >&)", "="},
	{"constructors of abbreviations", "_ZNSsC1ERKSs", "std::basic_string<char, std::char_traits<char>, std::allocator<char>>::basic_string(std::string const&)",
		"std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string(std::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)", "="},
	{"qualified names in expressions", "_Z1fIiENSt9enable_ifIXaantsr1AIT_EE1xsr1B1CIS1_E1DE1yEvE4typeES1_",
		"std::enable_if<!A<int>::x && B::C<int>::D::y, void>::type f<int>(int)", "std::enable_if<(!A<int>::x)&&B::C<int>::D::y, void>::type f<int>(int)", "="},
	{"qualified names in std, as gcc has them", "_Z1fIiENSt9enable_ifIXsrSt1AIT_E1xEvE4typeES2_", "",
		"std::enable_if<std::A<int>::x, void>::type f<int>(int)", "std::enable_if<std::A<int>::x, void>::type f<int>(int)"},
	{"transactional clones", "_ZGTtNK1A4whatEv", "", "transaction clone for A::what() const", "transaction clone for A::what() const"},
	{"conversion to a template", "_ZNK1AcvSt6vectorI1BSaIS1_EEEv", "", "A::operator std::vector<B, std::allocator<B> >() const", "A::operator std::vector<B, std::allocator<B>>() const"},
	{"conversion to a parameter", "_ZN1AcvT_IiEEv", "A::operator int<int>()", "A::operator int<int>()", "="},
	{"destructors of types without a name", "_ZN1AUt_D1Ev", "A::'unnamed'::~()", "A::{unnamed type#1}::~A()", "A::'unnamed'::~'unnamed'()"},
	{"types without a name that are referred to", "_ZN1fUt0_C2EOS0_", "f::'unnamed0'::(f::'unnamed0'&&)", "f::{unnamed type#2}::f({unnamed type#2}&&)", "f::'unnamed0'::'unnamed0'(f::'unnamed0'&&)"},
	{"inherited constructors", "_ZN1ACI21BEi", "A::A(int)", "A::B(int)", "="},
	{"thread-local data", "_ZTW1x", "thread-local wrapper routine for x", "TLS wrapper function for x", "="},
	{"suffixes of clones", "_Z1fv.part.0.cold", "f() (.part.0.cold)", "f() [clone .part.0] [clone .cold]", "="},
	{"temporaries", "_ZGR1x_", "reference temporary for x", "", "="},
	{"operators", "_ZlsIcEvT_", "void operator<<<char>(char)", "void operator<< <char>(char)", "="},
	{"pointers to members as results", "_Z1fIiEM1AFPFvT_EvES1_", "void (* (A::*f<int>(int))())(int)", "void (* (A::*f<int>(int))())(int)", "="},
	{"arrays", "_Z1fRA2_A3_Ki", "f(int const (&) [2][3])", "f(int const (&) [2][3])", "="},
	{"functions with qualifiers", "_Z1fM1AKFvvREPDoFvvE", "f(void (A::*)() const &, void (*)() noexcept)", "f(void (A::*)() const &, void (*)() noexcept)", "="},
	{"references to references", "_Z1fIRiJOcEEvOT_DpRT0_", "void f<int&, char&&>(int&, char&)", "void f<int&, char&&>(int&, char&)", "="},
	{"operators of comparison among template arguments", "_Z1fILi1EEv1AIXgtT_Li0EEE", "void f<1>(A<(1 > 0)>)", "void f<1>(A<((1)>(0))>)", "="},
	{"folds", "_Z1fIJLb1ELb0EEEvDTflaaT_E", "void f<true, false>(decltype((... && (true, false))))", "void f<true, false>(decltype ((...&&(true, false))))", "="},
	{"lambdas with template parameters", "_ZZ1gvENKUlTyTnT_T_E_clIiLi1EEEDaS_",
		"auto g()::'lambda'<typename $T, $T $N>($T)::operator()<int, 1>($T) const", "auto g()::{lambda<typename $T0, $T0 $N1>($T0)#1}::operator()<int, 1>(int) const",
		"auto g()::'lambda'<typename $T, $T $N>($T)::operator()<int, 1>(int) const"},
	{"declared arguments that refer back", "_Z1fIiTnPFT_PKS0_EXadL_ZNS_1gES0_EEEvv", "void f<int, &f::g(int)>()", "", "="},
	{"constraints", "_Z1fIiQ1CIT_EEvv", "void f<int>()", "", "="},
	{"strings", "_Z1fIXtl1AtlA6_cLc72ELc10ELc1ELc101EEEEEvv", `void f<A{"H\n\1""e"}>()`, "void f<A{char [6]{(char)72, (char)10, (char)1, (char)101}}>()", "="},
	{"floating point literals", "_Z1fILf3fc00000ELdbff8000000000000ELe3fffc000000000000000EEvv", "void f<0x1.8p+0f, -0x1.8p+0, 0xcp-3L>()",
		"void f<(float)[3fc00000], (double)[bff8000000000000], (long double)[3fffc000000000000000]>()", "="},
	{"vendors' expressions", "_Z1fIiEDTu8__uuidoftT_EE", "", "", ""},
	{"enumerations", "_Z1fIL1A3EEvv", "void f<(A)3>()", "void f<(A)3>()", "="},
}

func TestNamesOfEachClass(t *testing.T) {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	llvm, gnu := oracle.Filter(t, "llvm-cxxfilt-22", names), oracle.Filter(t, "c++filt", names)
	for i, c := range cases {
		if c.abi == "=" {
			c.abi = c.llvm
		}
		for _, r := range []struct{ reading, want, tool string }{{"LLVM", c.llvm, llvm[i]}, {"GNU", c.gnu, gnu[i]}, {"ABI", c.abi, ""}} {
			var got string
			for _, of := range readings {
				if of.name == r.reading {
					got, _ = of.of(c.name)
				}
			}
			if got != r.want {
				t.Errorf("%s, %s of %.200s:\n got %s\nwant %s", c.what, r.reading, c.name, got, r.want)
			}
			if r.tool == c.name {
				r.tool = ""
			}
			if r.reading != "ABI" && r.tool != got {
				t.Errorf("%s, %s of %.200s:\n     got %s\nthe tool %s", c.what, r.reading, c.name, got, r.tool)
			}
		}
	}
}
