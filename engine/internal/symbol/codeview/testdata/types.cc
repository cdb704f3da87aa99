// SPDX-License-Identifier: Apache-2.0

// A program whose functions have parameters of all kinds of types, for oracle_test.go.

namespace std { template<class T> struct allocator { T *p; }; template<class T, class A=allocator<T>> struct vector { T *b,*e,*c; A a; T &at(int); static int count; typedef T value_type; }; }
struct S { int a; unsigned b:3, c:5; virtual int f(int, const char*) const; struct N { int q; } n; static int st; };
int S::st = 7;
int S::f(int x, const char *y) const { return x + a + *y; }
struct V1 : virtual S { int v; int g(); };
int V1::g() { return v; }
struct D : V1, S::N { double d; int (S::*pm)(int, const char *) const; int S::*dm; };
enum E { A1, B1 = -5, C1 = 100000 }; enum class EC : unsigned char { X = 200 };
union U { int i; float f; char c[4]; };
int stat(int a, S &s, S &&r, const volatile int *const p, int (*fp)(double, ...), int arr[3][4], E e, EC ec) { return a + s.a + r.a + *p + fp(1.0) + arr[1][2] + e + (int)ec; }
namespace ns { int hidden(std::vector<S*> &v, U u, char16_t c, wchar_t w, bool b, long l, unsigned long long q, decltype(nullptr)) { return u.i + c + w + b + l + q; } }
extern "C" int fp(double, ...) { return 1; }
extern "C" int entry(int argc) { S s; V1 v; D d; std::vector<S*> vs; U u; int arr[3][4] = {}; auto lam = [&](int q) { return q + argc; }; return stat(argc, s, (S&&)s, &argc, fp, arr, B1, EC::X) + ns::hidden(vs, u, u'a', L'b', true, 1, 2, nullptr) + lam(3) + d.g(); }
extern "C" void *memset(void *p, int c, unsigned long long n) { for (unsigned long long i = 0; i < n; i++) ((volatile char*)p)[i] = c; return p; }
extern "C" int _fltused = 0;
void operator delete(void*, unsigned long long) {}
