// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"strings"
	"testing"
)

// readable are names in the default style and in that of stacks, where that differs. The names that
// llvm-undname reads too are as it has them: TestNamesEqualLLVMs compares these too.
var readable = []struct{ name, whole, stacks string }{
	{"?x@@3HA", "int x", ""},
	{"?x@ns@@3QEBHEB", "int const *const ns::x", ""},
	{"?x@A@@1_NA", "protected: static bool A::x", "bool A::x"},
	{"?f@@YAXHPEADZZ", "void __cdecl f(int, char *, ...)", "f(int, char *, ...)"},
	{"?f@A@ns@@UEBA?AV12@AEBV12@@Z", "public: virtual class ns::A __cdecl ns::A::f(class ns::A const &) const", "ns::A::f(class ns::A const &) const"},
	{"?f@A@@QEHAAX$$QEIAH@Z", "public: void __cdecl A::f(int &&__restrict) &&", "A::f(int &&__restrict) &&"},
	{"?f@@YAP6AHH@ZP8A@@EBAXXZPEQ1@DPEAY03PEAY112F@Z", "int (__cdecl * __cdecl f(void (__cdecl A::*)(void) const, char A::*, short (*(*)[4])[2][3]))(int)", "f(void (__cdecl A::*)(void) const, char A::*, short (*(*)[4])[2][3])"},
	{"?f@@YGXPAH0PEAV?$B@H@@1@Z", "void __stdcall f(int *, int *, class B<int> *, class B<int> *)", "f(int *, int *, class B<int> *, class B<int> *)"},
	{"?f@@YAXX_E", "void __cdecl f(void) noexcept", "f(void) noexcept"},
	{"?f@@$$J0YAXXZ", `extern "C" void __cdecl f(void)`, "f(void)"},
	{"?f@?A0x12ab@@YAXV?$B@P6AXXZ@1@V21@@Z", "void __cdecl `anonymous namespace'::f(class 0x12ab::B<void (__cdecl *)(void)>, class 0x12ab::B<void (__cdecl *)(void)>)", "`anonymous namespace'::f(class 0x12ab::B<void (__cdecl *)(void)>, class 0x12ab::B<void (__cdecl *)(void)>)"},
	// Templates.
	{"??$f@HPEAV?$B@D@@$0A@$0?1$$V$1?x@@3HA$$CBH$$BY02H$$YB@@$S@@YAXXZ", "void __cdecl f<int, class B<char> *, 0, -2, &int x, int const, int[3], B>(void)", "f<int, class B<char> *, 0, -2, &int x, int const, int[3], B>(void)"},
	{"??$f@$H?g@A@@QEAAXXZ7$F7A@$MP8A@@EAAXXZ1?h@2@QEAAXXZ$E?y@@3HA@@YAXXZ", "void __cdecl f<{public: void __cdecl A::g(void), 8}, {8, 0}, &public: void __cdecl A::h(void), int y>(void)", "f<{A::g(void), 8}, {8, 0}, &A::h(void), int y>(void)"},
	{"??$?0H@?$A@D@@QEAA@H@Z", "public: __cdecl A<char>::A<char><int>(int)", "A<char>::A<char><int>(int)"},
	{"??$?BPEAH@A@@QEAAPEAHXZ", "public: int * __cdecl A::operator<int *> int *(void)", "A::operator<int *> int *(void)"},
	// Names with codes.
	{"??0A@ns@@QEAA@AEBV01@@Z", "public: __cdecl ns::A::A(class ns::A const &)", "ns::A::A(class ns::A const &)"},
	{"??1A@@UEAA@XZ", "public: virtual __cdecl A::~A(void)", "A::~A(void)"},
	{"??BA@@QEBA_NXZ", "public: bool __cdecl A::operator bool(void) const", "A::operator bool(void) const"},
	{"??MA@@QEBA_NAEBV0@@Z", "public: bool __cdecl A::operator<(class A const &) const", "A::operator<(class A const &) const"},
	{"??__MA@@QEBAHAEBV0@@Z", "public: int __cdecl A::operator<=>(class A const &) const", "A::operator<=>(class A const &) const"},
	{"??__LA@@QEAAHXZ", "public: int __cdecl A::operator co_await(void)", "A::operator co_await(void)"},
	{"??__K_km@@YAMO@Z", `float __cdecl operator ""_km(long double)`, `operator ""_km(long double)`},
	{"??_GA@@UEAAPEAXI@Z", "public: virtual void * __cdecl A::`scalar deleting dtor'(unsigned int)", "A::`scalar deleting dtor'(unsigned int)"},
	{"??_7A@@6BB@@C@ns@@@", "const A::`vftable'{for `B's `ns::C'}", ""},
	{"??_8A@@7B@", "const A::`vbtable'", ""},
	{"??_R0?AVA@@@8", "class A `RTTI Type Descriptor'", ""},
	{"??_R1A@?0A@EA@A@@8", "A::`RTTI Base Class Descriptor at (0, -1, 0, 64)'", ""},
	{"??_R2A@@8", "A::`RTTI Base Class Array'", ""},
	{"??_R3A@@8", "A::`RTTI Class Hierarchy Descriptor'", ""},
	{"??_R4A@@6B@", "const A::`RTTI Complete Object Locator'", ""},
	{".?AV?$B@H@ns@@", "class ns::B<int> `RTTI Type Descriptor Name'", ""},
	{"??__Ex@A@@YAXXZ", "void __cdecl `dynamic initializer for 'A::x''(void)", "`dynamic initializer for 'A::x''(void)"},
	{"??__F?x@A@@2HA@@YAXXZ", "void __cdecl `dynamic atexit destructor for `public: static int A::x''(void)", "`dynamic atexit destructor for `int A::x''(void)"},
	{"??_B?1??f@@YAXXZ@51", "`void __cdecl f(void)'::`2'::`local static guard'{2}", ""},
	{"??__J?1??f@@YAXXZ@5", "`void __cdecl f(void)'::`2'::`local static thread guard'", ""},
	{"??_9A@@$BBA@AA", "[thunk]: __cdecl A::`vcall'{16, {flat}}", "[thunk]: A::`vcall'{16, {flat}}"},
	{"?f@A@@WBA@EAAHXZ", "[thunk]: public: virtual int __cdecl A::f`adjustor{16}'(void)", "[thunk]: A::f`adjustor{16}'(void)"},
	{"?f@A@@$4PPPPPPPM@A@EAAHXZ", "[thunk]: public: virtual int __cdecl A::f`vtordisp{-4, 0}'(void)", "[thunk]: A::f`vtordisp{-4, 0}'(void)"},
	{"?f@A@@$R477PPPPPPPM@7EAAHXZ", "[thunk]: public: virtual int __cdecl A::f`vtordispex{8, 8, -4, 8}'(void)", "[thunk]: A::f`vtordispex{8, 8, -4, 8}'(void)"},
	// Scopes in functions.
	{"?x@?1??f@A@@QEAAHXZ@4HA", "int `public: int __cdecl A::f(void)'::`2'::x", ""},
	{"??R<lambda_1>@?0??main@@9@QEBA@XZ", "public: __cdecl `extern \"C\" main'::`1'::<lambda_1>::operator()(void) const", "`extern \"C\" main'::`1'::<lambda_1>::operator()(void) const"},
	// Literals.
	{"??_C@_05CJBACGMB@hello?$AA@", `"hello"`, ""},
	{"??_C@_1BA@IGMGAMBL@?$AAw?$AAi?$AAd?$AAe@", `L"wide"`, ""},
	{"??_C@_0FF@HCHJHMMO@a?5?$CCb?$CC?6?z@", `"a \"b\"\n\xFA"...`, ""},
	{"??_C@_0M@GFNAJIPG@a?$AA?$AA?$AAb?$AA?$AA?$AA?$AA?$AA?$AA?$AA@", `U"ab"`, ""},
	// A hash alone is left, and what follows a name does not count.
	{"??@0123456789abcdef0123456789abcdef@??_R4@x", "??@0123456789abcdef0123456789abcdef@??_R4@", ""},
	{"?f@@YAXXZ.llvm.1234", "void __cdecl f(void)", "f(void)"},
	// Signed pointers, and other conventions.
	{"?f@@YSXPE__ptrauth1A@ENC@AH@Z", "void __attribute__((__swiftcall__)) f(int *__ptrauth(2, 0, 1234))", "f(int *__ptrauth(2, 0, 1234))"},
}

// beyond are names that llvm-undname does not read, or reads wrongly.
var beyond = []struct{ name, whole string }{
	{"?f@A@@$$hQEAAXXZ", "public: void __cdecl A::f(void)"}, // ARM64EC
	{"?f@@YwXXZ", "void __regcall f(void)"},
	{"?f@@YAX_L_M@Z", "void __cdecl f(__int128, unsigned __int128)"},
	{"??_R0$$BY02H@8", "int `RTTI Type Descriptor'[3]"},
	// C++/CX.
	{"?ToString@Object@Platform@@QE$AAAPE$AAVString@2@XZ", "public: class Platform::String ^ __cdecl Platform::Object::ToString(void)"},
	// Values of C++20.
	{"??$f@$ADPMAAAAA@$BLPPIAAAAAAAAAAAA@@@YAXXZ", "void __cdecl f<1.5, -1.5>(void)"},
	{"??$f@$2UP@@@@@YAXXZ", "void __cdecl f<struct P{}>(void)"},
	{"??$f@$2US@@2UB@@H00@MADPMAAAAA@3H04@05@@3U2@2U2@H06@@2U2@H07@@@@@@YAXXZ", "void __cdecl f<struct S{struct B{1}, 1.5, {5, 6}, {struct B{7}, struct B{8}}}>(void)"},
	{"??$fu@$7TU@@b@2UB@@H03@@@@YAXXZ", "void __cdecl fu<union U{.b = struct B{4}}>(void)"},
	{"??$fq@$2UQ@@PEAH56E?gp@@3UP@@Ax@@@PEQ3@H83@4@P6AXXZE?fun@@YAXXZP83@EAAXXZNPEBD0A@$$T0A@AEAH6E?2@3U3@A4@@@@YAXXZ", "void __cdecl fq<struct Q{&gp.x, &P::x, &void __cdecl fun(void), nullptr, 0, 0, &gp.x}>(void)"},
	{"??$fp@$6C61?gp@@3UP@@Abs@@00@b@@@@YAXXZ", "void __cdecl fp<&gp.bs[1].b>(void)"},
	{"??$fa@$MMADPMAAAAA@@@YAXXZ", "void __cdecl fa<1.5>(void)"},
}

func TestNamesAreReadable(t *testing.T) {
	for _, c := range readable {
		stacks := c.stacks
		if stacks == "" {
			stacks = c.whole
		}
		expect(t, c.name, Style{}, c.whole)
		expect(t, c.name, Stacks, stacks)
	}
	for _, c := range beyond {
		expect(t, c.name, Style{}, c.whole)
	}
}

func expect(t *testing.T, name string, style Style, want string) {
	t.Helper()
	if got, ok := Undecorate(name, style); got != want || !ok {
		t.Errorf("%s is %q, %v, expected %q", name, got, ok, want)
	}
}

func TestTypesOfDescriptorsAreReadable(t *testing.T) {
	for descriptor, want := range map[string]string{
		".?AVerror@app@@": "class app::error", ".?AV?$E@H@@": "class E<int>", ".PEAD": "char *", ".H": "int", ".W4E@@": "enum E", ".P6AXH@Z": "void (__cdecl *)(int)",
		"": "", ".": "", "?AVerror@@": "", ".?AVerror@@x": "", ".?AVerror@": "", ".0": "",
	} {
		if got, ok := Type(descriptor); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v, expected %q", descriptor, got, ok, want)
		}
	}
}

func TestEachPartOfAStyleLeavesOutItsOwn(t *testing.T) {
	const function, variable = "?f@A@@UEAAHXZ", "?x@A@@2HA"
	for _, c := range []struct {
		style              Style
		function, variable string
	}{
		{Style{NoAccess: true}, "virtual int __cdecl A::f(void)", "static int A::x"},
		{Style{NoCallingConvention: true}, "public: virtual int A::f(void)", "public: static int A::x"},
		{Style{NoMemberType: true}, "public: int __cdecl A::f(void)", "public: int A::x"},
		{Style{NoReturnType: true}, "public: virtual __cdecl A::f(void)", "public: static int A::x"},
		{Style{NoVariableType: true}, "public: virtual int __cdecl A::f(void)", "public: static A::x"},
	} {
		expect(t, function, c.style, c.function)
		expect(t, variable, c.style, c.variable)
	}
}

func TestOtherNamesAreNotRead(t *testing.T) {
	for _, name := range []string{
		"", "?", "??", "?x", "?x@", "?x@@", "?x@@3", "?x@@3H", "?x@@5HA", "x", "_Z1fi", "..", ".H?", "?f@@YAX", "?f@@YAXX", "?f@@YAXH", "?f@@YAX0@Z",
		"?f@@YAXV1@@Z", "??_Qfoo@@QAEXXZ", "??0@@QEAA@XZ", "??BA@@3HA", "??_R0H@8x", "??@abc", "??_C@_13AAAAAAAA@?$AAa?$AAb?$AAc@", "??_C@_03AAAAAAAA@?", "?A0x1234",
		"??$f@$$QQ@@YAXXZ", "??$f@$Q@@YAXXZ", "??$f@$2UA@@", "?f@@YAXY0A@H", "?f@@YAXY?0H@Z",
	} {
		if got, ok := Undecorate(name, Style{}); ok {
			t.Errorf("%q is read as %q", name, got)
		}
	}
}

// hostile nest without end, or refer back to what doubles with each reference.
func hostile() map[string]string {
	const most = 1 << 13
	doubling := "?f@@YAXPAH"
	for i := range 9 {
		digit := string(rune('0' + i))
		doubling += "P6AX" + strings.Repeat(digit, 60) + "@Z"
	}
	names := "?f@@YAX"
	for range most / 16 {
		names += "V?$A@V?$B@H@@@@"
	}
	return map[string]string{
		"doubling":         doubling + strings.Repeat("9", 60) + "@Z",
		"pointers":         "?x@@3" + strings.Repeat("PEA", most/3),
		"references":       "?f@@YAX" + strings.Repeat("PEA", 300) + "H" + strings.Repeat("0", 6000) + "@Z",
		"templates":        "?x@@3" + strings.Repeat("V?$A@", most/5),
		"wide templates":   names + "@Z",
		"functions":        "?x@@3" + strings.Repeat("P6A", most/3),
		"scopes":           "?x" + strings.Repeat("@?1??f", most/6),
		"arrays":           "?x@@3Y" + "PPPPPPPP@" + strings.Repeat("0", most),
		"array of arrays":  "?x@@3" + strings.Repeat("Y00", most/3) + "H",
		"values":           "??$f@$" + strings.Repeat("2", most),
		"parts":            "??$f@$" + strings.Repeat("6", most),
		"arguments":        "??$f@" + strings.Repeat("$1?x@@3HA", most/9) + "@@YAXXZ",
		"initializers":     strings.Repeat("??__E", most/5),
		"nested names":     "?f@" + strings.Repeat("a@", most/2),
		"literal":          "??_C@_0BAA@A@" + strings.Repeat("a", most),
		"kept names":       "?f@@YAX" + strings.Repeat("V?$A@V?$B@V?$C@V?$D@V?$E@H@@@@@@@@@@", most/36) + "@Z",
		"long kept names":  "?f@@YAX" + strings.Repeat("V?$A@"+strings.Repeat("PEAP6AX0@Z", 60)+"@@", 10) + "@Z",
		"numbers":          "?f@@YAXPEAY" + strings.Repeat("P", most) + "@H@Z",
		"dynamic nesting":  "??__E?" + strings.Repeat("?__E?", most/5),
		"member pointers":  "?x@@3" + strings.Repeat("PEQA@@", most/6),
		"local operators":  "?x@" + strings.Repeat("?1???BA@", most/8),
		"back in a scope":  "?x@A@" + strings.Repeat("1", most),
		"types of results": "?f@@YA" + strings.Repeat("P6A", most/3) + "X",
	}
}

func TestHostileNamesTakeLittle(t *testing.T) {
	for what, name := range hostile() {
		t.Run(what, func(t *testing.T) {
			for _, style := range []Style{{}, Stacks} {
				if got, _ := Undecorate(name, style); len(got) >= maxResult {
					t.Errorf("the result has %d bytes", len(got))
				}
			}
			allocated := testing.AllocsPerRun(1, func() { Undecorate(name, Style{}) })
			if allocated > 100_000 {
				t.Errorf("%v allocations for %d bytes", allocated, len(name))
			}
		})
	}
}

func FuzzUndecorate(f *testing.F) {
	for _, c := range readable {
		f.Add(c.name)
	}
	for _, c := range beyond {
		f.Add(c.name)
	}
	for _, name := range hostile() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 1<<13 {
			t.Skip("symbol.Demangle leaves longer ones")
		}
		Type(name)
		for _, style := range []Style{{}, Stacks} {
			got, ok := Undecorate(name, style)
			if len(got) >= maxResult || ok && got == "" {
				t.Errorf("%v, the result has %d bytes", ok, len(got))
			}
		}
	})
}

func BenchmarkUndecorate(b *testing.B) {
	for b.Loop() {
		Undecorate("?f@A@ns@@UEBA?AV12@AEBV12@PEAV?$vector@HV?$allocator@H@std@@@std@@@Z", Stacks)
	}
}
