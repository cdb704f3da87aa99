// SPDX-License-Identifier: Apache-2.0

// One of each thing that has a name of its own kind, for clang to decorate.

namespace std { using size_t = decltype(sizeof(0)); using nullptr_t = decltype(nullptr);  class type_info { virtual ~type_info(); }; }
struct S { int a; float b; const char *p; int *q; bool operator==(const S&) const = default; };
int gi; 
template<S s> struct N { void f(); };
template<S s> void N<s>::f() {}
template struct N<S{1,2.5f,nullptr,&gi}>;
template<float f> void fl() {}
template void fl<1.5f>();
template<double f> void fd() {}
template void fd<-1.5>();
struct Arr { int a[3]; struct I { short x; } i; };
template<Arr a> void fa() {}
template void fa<Arr{{1,2,3},{4}}>();
union Un { int a; float f; };
template<Un u> void fu() {}
template void fu<Un{3}>();
struct M { int a; int b; void m(); virtual void v(); };
template<int M::*p> void mp() {}
template void mp<&M::b>();
template void mp<nullptr>();
template<void (M::*p)()> void mf() {}
template void mf<&M::m>();
template void mf<&M::v>();
template void mf<nullptr>();
template<auto a> void au() {}
template void au<1>(); template void au<'c'>(); template void au<&gi>(); template void au<&M::a>(); template void au<&M::m>(); template void au<nullptr>(); template void au<1.5>(); template void au<S{1}>();
template<auto &a> void ar() {}
template void ar<gi>();
template<decltype(auto) a> void da() {}
template void da<(gi)>(); template void da<3>();
template<template<class...> class T> void tt() {}
template<class...> struct TT {};
template<class T> using AL = TT<T>;
template void tt<TT>(); 
template void tt<AL>(); 
template<class... T> void pk(T...) {}
template void pk<>(); template void pk<int>(int); template void pk<int,float,TT<>>(int,float,TT<>);
template<class... T, class U> void pk2(U, TT<T...>) {}
template void pk2<int,char>(int, TT<int,char>);
template<const int *p> void ip() {}
struct HH { static const int x; int y; int z[4]; static HH h; };
const int HH::x = 3; HH HH::h;
template void ip<&HH::x>(); template void ip<&HH::h.y>(); template void ip<&HH::h.z[2]>(); template void ip<nullptr>();
template<std::nullptr_t p> void np() {}
template void np<nullptr>();
template<class T> concept C = sizeof(T) > 0;
template<C T> void cc(T) {} template void cc<int>(int);
template<class T> void rq(T) requires C<T> {} template void rq<int>(int);
auto la = [](auto x) { return x; };
int use() { static int once = gi; auto l = [&]<class T>(T t) { static int k = gi; return t + once + k; }; struct Loc { int f() { return gi; } } loc; enum { EA } e = EA; struct { int f() { return 1; } } un; return la(1) + l(2) + loc.f() + un.f() + e; }
namespace { struct An { virtual ~An(); int f(); }; An::~An() {} int An::f() { return gi; } int anon = gi; namespace in { void g() {} } }
int use2() { An a; in::g(); return a.f() + anon; }
int operator""_lit(unsigned long long) { return 0; }
int operator""_str(const char*, std::size_t) { return 0; }
template<char... c> int operator""_tl() { return 0; } int use3() { return 12_tl; }
struct O { int operator<=>(const O&) const { return 0; } O& operator,(int); void *operator new(std::size_t); void operator delete(void*); void *operator new[](std::size_t); operator int() const &; operator int*() &&; template<class T> operator T*(); int operator()(int) const noexcept; int operator[](int); O *operator->(); int operator->*(int); explicit operator bool() const; };
O& O::operator,(int) { return *this; } void *O::operator new(std::size_t) { return 0; } void O::operator delete(void*) {} void *O::operator new[](std::size_t) { return 0; } O::operator int() const & { return 0; } O::operator int*() && { return 0; } template<class T> O::operator T*() { return 0; } template O::operator char*(); int O::operator()(int) const noexcept { return 0; } int O::operator[](int) { return 0; } O *O::operator->() { return this; } int O::operator->*(int) { return 0; } O::operator bool() const { return true; }
bool cmp(O a, O b) { return (a <=> b) < 0; }
void nx(void (*)() noexcept, int (O::*)() const &, int (O::* const *)(...) volatile) {}
int (*fpa(int (&)[3], const int (*)[4][5], int (&&)[]))[7] { return 0; }
void q(int *__restrict, int __unaligned *, const volatile int *const volatile *, int *__ptr32, const char (&)[4]) {}
void vc(__attribute__((vector_size(16))) float, _Complex double, __fp16*) {}
#ifndef __i386__
void wide(__int128, unsigned __int128, _Float16) {}
__attribute__((swiftasynccall)) void swa(int) {}
#endif
#if defined(__i386__) || defined(__x86_64__) && !defined(__arm64ec__)
void __vectorcall vcc(int) {}
void __regcall rcc(int) {}
#endif
typedef float v4 __attribute__((ext_vector_type(4))); void v(v4) {}
 __attribute__((swiftcall)) void sw(int) {}
void blk(decltype(nullptr), char8_t, char16_t, char32_t, wchar_t, bool, long long, unsigned long long, long double, signed char) {}
auto ret(int x) { return x; } decltype(auto) ret2(int x) { return (x); } const auto ret3() { return 1; } template<class T> auto ret4(T t) { return t; } auto x4 = ret4(1); auto *ret5() { return &gi; }
extern "C" { int cfn() { static int s = gi; struct L { int f() { return s; } } l; return l.f(); } namespace ec { int inc; } }
struct V1 { virtual void f(); virtual ~V1(); int i; }; struct V2 { virtual void g(); virtual V2 *cov(); int i; }; struct V3 : V1, V2 { void f() override; void g() override; V3 *cov() override; }; struct V4 : virtual V3 { int k; V4(); void g() override; ~V4() override; }; struct V5 : V4, virtual V2 { V5(); void f() override; V5 *cov() override; };
void V1::f() {} V1::~V1() {} void V2::g() {} V2 *V2::cov() { return this; } void V3::f() {} void V3::g() {} V3 *V3::cov() { return this; } V4::V4() {} void V4::g() {} V4::~V4() {} V5::V5() {} void V5::f() {} V5 *V5::cov() { return this; }
template<class T> struct St { static T t; static int count; }; template<class T> T St<T>::t = T(); template<class T> int St<T>::count = gi; template struct St<O>; template struct St<V1>; struct D { ~D(); D(); }; D dd; D darr[3]; template struct St<D>; thread_local D td; D &usetd() { return td; } inline D ind; inline int inl() { static D d; thread_local D t2; return 0; } int ci() { return inl() + (int)(long long)&ind; }
template<class T> T vt = T(); template int vt<int>; template<class T> const T *const *vt2 = nullptr; template const int *const *vt2<int>;
const char *s1() { return "a \"quoted\" \n\t\x01\xff string"; } const wchar_t *s2() { return L"wide \x1234 text"; } const char16_t *s3() { return u"sixteen"; } const char32_t *s4() { return U"thirtytwo"; } const char8_t *s5() { return u8"eight"; } const char *s6() { return "a string that is so long that the mangling cuts it off somewhere in the middle of its text"; } const wchar_t *s7() { return L"a string that is so long that the mangling cuts it off"; } const char *s8() { return ""; } const wchar_t *s9() { return L""; } const char *s10() { return "a\0b\0\0\0\0"; } const char16_t *s11() { return u"long sixteen text that goes beyond the bound of thirty-two"; } const char32_t *s12() { return U"long thirty-two text that goes beyond the bound of it"; }

const std::type_info *ti[] = { &typeid(int), &typeid(O*), &typeid(V5), &typeid(void(*)(int)), &typeid(TT<int>), &typeid(int[3]), &typeid(void(int)), &typeid(const char*), &typeid(int M::*), &typeid(void (M::*)()) , &typeid(std::nullptr_t), &typeid(la)};
void thr() { throw 1; } void thr2() { throw V5(); } void thr3() { throw "x"; }
void ctch() { try { thr(); } catch (V1 &) {} catch (int) {} catch (...) {} }
template<class T> struct Deep { template<class U> struct In { template<class V> void f(T, U, V) {} template<class V> struct In2; }; }; template void Deep<int>::In<char>::f<long>(int, char, long); template void Deep<Deep<Deep<int>>>::In<Deep<int>::In<int>>::f<Deep<char>>(Deep<Deep<int>>, Deep<int>::In<int>, Deep<char>);
template<int... I> struct Seq {}; template<class T, T... I> void seq(Seq<I...>) {} template void seq<int,1,-2,3,0,2147483647,-2147483647-1>(Seq<1,-2,3,0,2147483647,-2147483647-1>); template void seq<int>(Seq<>);
template<unsigned long long n, bool b, char c> void num() {} template void num<~0ull, true, 'x'>(); template<long long n> void num2() {} template void num2<(-9223372036854775807ll-1)>();
enum class E : char { A, B }; template<E e> void en() {} template void en<E::B>(); enum { UA, UB }; template<class T> void un(T) {} template void un<decltype(UA)>(decltype(UA)); 
template<void (*f)()> void fn() {} template void fn<thr>(); template<void (*f)(), int *p, int &r> void fn2() {} template void fn2<thr2, &gi, gi>();
template<class F> void cl(F f) { f(); } void ucl() { cl([]{}); cl([]{ cl([]{}); }); int z=0; cl([=]() mutable { return z; }); }
struct DA { int m = [] { return 1; }(); void f(int x = [] { return 2; }()) {} }; void uda() { DA d; d.f(); }
namespace ns1 { inline namespace v1 { struct P {}; void fp(P, P*, P&, const P&, P&&, P**) {} } }
void many(ns1::P, ns1::P*, O*, O&, V1*, V2*, V3*, V4*, V5*, TT<int>*, TT<char>*, TT<int>*, ns1::P*, V5*, TT<char>*, O&) {}
