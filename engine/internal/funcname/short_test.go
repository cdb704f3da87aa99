// SPDX-License-Identifier: Apache-2.0

package funcname

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// shortened are the short forms of names.
var shortened = []struct{ name, want string }{
	// C, and other languages without marks.
	{"main", "main"}, {"memcpy@plt", "memcpy@plt"}, {"f.part.0", "f.part.0"}, {"f(int)", "f"}, {"", ""},
	{"pack__proc", "pack__proc"}, {`pack."+"`, `pack."+"`}, {"mod_MOD_f", "mod_MOD_f"}, {"pack.proc", "pack.proc"}, {"mod::f", "mod::f"}, {`pack."<"`, `pack."<"`}, {"f [gpu]", "f [gpu]"},
	// C++.
	{"Catalog::with(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&) const", "Catalog::with"},
	{"std::optional<Order> Catalog::with<std::function<bool (Order const&)>, 3ul>(std::function<bool (Order const&)>)", "Catalog::with<...>"},
	{"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_append(char const*, unsigned long)", "std::string::_M_append"},
	{"std::__1::basic_string<wchar_t, std::__1::char_traits<wchar_t>, std::__1::allocator<wchar_t>>::append(wchar_t const*)", "std::wstring::append"},
	{"std::basic_string_view<char, std::char_traits<char> >::at(unsigned long) const", "std::string_view::at"},
	{"std::basic_string<char16_t>::f()", "std::u16string::f"},
	{"std::basic_string<char, my::traits, std::allocator<char> >::f()", "std::basic_string<...>::f"},
	{"std::basic_ostream<char, std::char_traits<char> >& std::operator<< <char, std::char_traits<char>, std::allocator<char> >(std::basic_ostream<char, std::char_traits<char> >&, int)", "std::operator<< <...>"},
	{"std::basic_ostream<char16_t>::f()", "std::basic_ostream<...>::f"},
	{"A<int>::operator<(A const&)", "A<int>::operator<"}, {"A::operator()(int) const", "A::operator()"}, {"A::operator->()", "A::operator->"},
	{"A::operator-><Item>()", "A::operator-> <...>"}, {"bool operator< <int>(A const&)", "operator< <int>"}, {"A::operator<=>(A const&) const", "A::operator<=>"},
	{"A<int>::operator std::vector<Item>() const", "A<int>::operator std::vector<...>"}, {"A::operator bool() const", "A::operator bool"},
	{"A::operator void (*)(int)() const", "A::operator void"}, {"A::operator new(unsigned long)", "A::operator new"}, {"operator new[](unsigned long)", "operator new[]"},
	{"A::operator/(int)", "A::operator/"}, {`operator"" _x(char)`, `operator""_x`}, {"A::operator,(int)", "A::operator,"},
	{"decltype(auto) f<Item>(int)", "f<...>"}, {"decltype (g(1)) ns::A::f<int>(int)", "ns::A::f<int>"}, {"auto f<int>(int) requires C<int>", "f<int>"},
	{"(anonymous namespace)::(anonymous namespace)::f(int)", "(anonymous namespace)::(anonymous namespace)::f"},
	{"f(int)::Local::g(int) const", "f::Local::g"}, {"void f<int>(int)::Local::g<char>()", "f<int>::Local::g<...>"},
	{"total(std::vector<int> const&)::{lambda(int)#1}::operator()(int) const", "total::{lambda}"}, {"total()::'lambda0'(int)::operator()(int) const", "total::{lambda}"},
	{"auto total()::{lambda(auto:1)#2}::operator()<int>(int) const", "total::{lambda}"}, {"total()::$_0::operator()(int) const", "total::{lambda}"},
	{"std::_Function_handler<int (int), main::{lambda(int)#1}>::_M_invoke(std::_Any_data const&, int&&)", "std::_Function_handler<...>::_M_invoke"},
	{"void (*ns::A::f<Item>(int))(char)", "ns::A::f<...>"}, {"std::enable_if<(1>2), int>::type ns::f<(ns::E)1, &ns::A::operator< >()", "ns::f<...>"},
	{"f[abi:cxx11](int)", "f"}, {"A<>::f()", "A::f"}, {"f(int) [clone .cold]", "f"}, {"non-virtual thunk to A<int>::f()", "non-virtual thunk to A<int>::f"},
	{"vtable for A<int>", "vtable for A<int>"}, {"A::~A()", "A::~A"}, {"A<int>::A(int)", "A<int>::A"},
	// Microsoft's tools, and others for Windows.
	{"ns::A<class ns::B<int>>::f(class ns::B<int> const &) const", "ns::A<...>::f"}, {"`anonymous namespace'::f<enum E>(enum E)", "(anonymous namespace)::f<...>"},
	{"class std::basic_string<char, struct std::char_traits<char>, class std::allocator<char>> f(void)", "f"},
	{"std::basic_string<char, struct std::char_traits<char>, class std::allocator<char>>::append(char const *)", "std::string::append"},
	{"std::basic_string<char, struct std::char_traits<char>, class std::allocator<char>>::basic_string<char, struct std::char_traits<char>, class std::allocator<char>>(void)", "std::string::basic_string"},
	{"A<int, class B>::A<int, class B>(int)", "A<...>::A"}, {"A<class B>::~A<class B>(void)", "A<...>::~A"}, {"A<class B>::A<class B><int>(int)", "A<...>::A<int>"},
	{"`void __cdecl f(int)'::`2'::<lambda_1>::operator()(void) const", "f::{lambda}"}, {"`extern \"C\" main'::`1'::<lambda_1>::operator()(void) const", "main::{lambda}"},
	{"`public: bool __cdecl A<class B>::operator<(class A<class B> const &) const'::`2'::x", "A<...>::operator<::x"}, {"main::__l2::<lambda_1>::operator()", "main::{lambda}"},
	{"``public: int __cdecl A::f(void)'::`2'::<lambda_1>::operator()(void) const'::`3'::Local::g(void)", "A::f::{lambda}::Local::g"},
	{"?A0x8417fefe::f::__l23::<lambda_2>::operator()", "(anonymous namespace)::f::{lambda}"}, {"`f'::`2'::<lambda_1>::<lambda_invoker_cdecl>(int)", "f::{lambda}"},
	{"A::`scalar deleting dtor'(unsigned int)", "A::`scalar deleting dtor'"}, {"[thunk]: A::f`adjustor{16}'(class B<int>)", "[thunk]: A::f"},
	{"[thunk]: A::`vector deleting dtor'`vtordisp{-4, 0}'(unsigned int)", "[thunk]: A::`vector deleting dtor'"}, {"[thunk]: A::`vcall'{16, {flat}}", "[thunk]: A::`vcall'"},
	{"`dynamic initializer for 'ns::A<class B>::x''(void)", "`dynamic initializer for 'ns::A<...>::x''"}, {"`dynamic atexit destructor for `int A::x''(void)", "`dynamic atexit destructor for 'A::x''"},
	{"A::operator class B<int>(void) const", "A::operator B<int>"}, {"A::operator<<<class B>(class B)", "A::operator<< <...>"}, {"operator<<int>(unsigned long)", "operator< <int>"},
	{"const A::`vftable'", "A::`vftable'"}, {"A::`RTTI Base Class Descriptor at (0, -1, 0, 64)'", "A::`RTTI Base Class Descriptor at'"}, {"operator \"\"_km(long double)", "operator \"\"_km"},
	{"int `f(void)'::`2'::x", "f::x"}, {"`", "`"}, {"``", "``"}, {"f`", "f"}, {"`x", "`x"},
	// Rust.
	{"core::ptr::drop_in_place::<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place<...>"}, {"alloc::vec::Vec<T,A>::push", "alloc::vec::Vec<...>::push"},
	{"krate::f::h0123456789abcdef", "krate::f"}, {"krate::f::{{closure}}", "krate::f::{closure}"}, {"krate::f::<u8>::{closure#0}", "krate::f<u8>::{closure}"},
	{"<alloc::vec::Vec<T, A> as core::iter::Iterator>::next", "<alloc::vec::Vec<...> as core::iter::Iterator>::next"},
	{"<&'a mut [T; 3] as core::convert::Into<U>>::into", "<&mut [T; 3] as core::convert::Into<U>>::into"},
	{"<krate::Stack<u8>>::push", "krate::Stack<u8>::push"}, {"core::fmt::num::<impl core::fmt::Debug for u32>::fmt", "core::fmt::num::<impl core::fmt::Debug for u32>::fmt"},
	{"<<A as B>::C as D<E>>::f", "<<A as B>::C as D<E>>::f"},
	// Others.
	{"-[Foo bar:]", "-[Foo bar:]"}, {"[unknown]", "[unknown]"}, {"JS:*f /a/b.js:3:5", "JS:*f /a/b.js:3:5"}, {"py::<module>:/tmp/x.py", "py::<module>:/tmp/x.py"},
	{"LazyCompile:~g file:///x.js:1", "LazyCompile:~g file:///x.js:1"}, {"$lists:foldl/3", "$lists:foldl/3"}, {"<<<<", "<<<<"}, {"::", "::"}, {"()", "()"},
	{"runtime.mapassign_faststr[go.shape.int]", "runtime.mapassign_faststr[...]"}, {"main.(*T[go.shape.int,a/b.C]).M", "main.(*T[...]).M"},
}

func TestShort(t *testing.T) {
	for _, c := range shortened {
		if got := Short(c.name, "", ""); got != c.want {
			t.Errorf("%q is %q, expected %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct{ name, linkage, file, want string }{
		{"d.C!(int).destroy!(const(char)[], 3)() const", "_D1d", "", "d.C!(...).destroy!(...)"},
		{"std.file.split(int, d.C).get()", "", "f.d", "std.file.split.get"}, {"D main", "_Dmain", "", "D main"},
		{"main.Map[int,string]", "", "f.go", "main.Map[...]"},
	} {
		if got := Short(c.name, c.linkage, c.file); got != c.want {
			t.Errorf("%q is %q, expected %q", c.name, got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name string
		most int
		want string
	}{
		{"main", 40, "main"},
		{"std::sys::backtrace::__rust_begin_short_backtrace<...>", 46, "std::…::__rust_begin_short_backtrace<...>"},
		{"<alloc::boxed::Box<...> as core::ops::function::FnOnce<...>>::call_once", 40, "<Box<...> as FnOnce<...>>::call_once"},
		{"<&mut dyn core::fmt::Write as core::fmt::Write>::write_str", 40, "<&mut dyn Write as Write>::write_str"},
		{"<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<...>>::call_once", 40, "<AssertUnwindSafe as FnOnce>::call_once"},
		{"<krate::normalize::AssocTypeNormalizer as krate::fold::TypeFolderOfTypes>::fold", 40, "<AssocTypeNormalizer as …>::fold"},
		{"<u8 as [_]::to_vec_in::ConvertVec>::to_vec<...>", 40, "<u8 as ConvertVec>::to_vec<...>"},
		{"std.uni.MultiArray!(...).MultiArray.length!(...).length", 40, "std.….MultiArray.length!(...).length"},
		{"a::b::c::d::e", 10, "a::…::d::e"},
		{"github.com/a/b/c/pkg.(*Type[...]).Method", 36, "github.com/…/pkg.(*Type[...]).Method"},
		{"aaaaaaaaaaaaaaaaaaaa::f", 10, "…::f"},
		{"a_function_with_a_very_long_name<...>", 20, "a_funct…ng_name<...>"},
		{"abcdefghij", 5, "ab…ij"},
	} {
		got := Fit(c.name, c.most)
		if n := utf8.RuneCountInString(got); n > c.most {
			t.Errorf("%q has %d characters, expected at most %d", got, n, c.most)
		}
		if got != c.want {
			t.Errorf("%q in %d is %q, expected %q", c.name, c.most, got, c.want)
		}
	}
}

// isBalanced reports whether the brackets of a name close in their order, except for operators.
func isBalanced(name string) bool {
	var open []byte
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case hasPrefixAt(name, i, "operator") && (i == 0 || !isIdentifier(name[i-1])):
			i += len("operator") + len(operatorAt(name, i+len("operator"))) - 1
		case closer(c) != 0:
			open = append(open, closer(c))
		case c == '>' && i > 0 && name[i-1] == '-':
		case c == '>' || c == ')' || c == ']' || c == '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

func FuzzShort(f *testing.F) {
	for _, c := range shortened {
		f.Add(c.name, "", "")
	}
	f.Add("a!(b)(c)", "_D1a", "f.d")
	f.Fuzz(func(t *testing.T, name, linkage, file string) {
		short := Short(name, linkage, file)
		if len(short) > len(name) || short == "" && name != "" {
			t.Errorf("%q of %q", short, name)
		}
		if utf8.ValidString(name) && !utf8.ValidString(short) {
			t.Errorf("%q of %q is no UTF-8", short, name)
		}
		for _, most := range []int{8, 40} {
			if fit := Fit(short, most); utf8.RuneCountInString(fit) > most {
				t.Errorf("%q of %q has more than %d characters", fit, short, most)
			}
		}
	})
}

// TestLongNamesTakeNoTime has names that are nothing but brackets.
func TestLongNamesTakeNoTime(t *testing.T) {
	for _, part := range []string{"<", "(", "(*", "{", "[", "<<", "a<b>::", "operator<", "<a as ", "`", "'", "::`2'", "` for '", "::", " ", "a ", "<'a", "a!(", "vtable for ", "/", "a::"} {
		name := strings.Repeat(part, maxName/len(part))
		Fit(Short(name, "", ""), 40)
		Fit(name, 40)
		Short(name, "_D", "")
	}
}
