// SPDX-License-Identifier: Apache-2.0
// C++ for programs without a library: templates, lambdas, virtual functions, exceptions.
volatile int sink;

extern "C" {
int _fltused;
void __std_terminate() { for (;;) {} }
int __CxxFrameHandler3(...) { return 0; }
int __CxxFrameHandler4(...) { return 0; }
int __GSHandlerCheck_EH4(...) { return 0; }
void _CxxThrowException(void *, void *) { for (;;) {} }
void _purecall() {}
int _except_list, _tls_index;
}
void operator delete(void *, decltype(sizeof 0)) noexcept { sink = 1; }
void *operator new(decltype(sizeof 0) n) { static char room[4096]; return room + (sink & 7) * n; }

namespace shapes {
namespace {
int hidden(int x) { return x + sink; }
}
struct point { int x, y; point operator+(const point &o) const { return {x + o.x, y + o.y}; } };
struct base {
  virtual ~base() { sink++; }
  virtual int area(point p) = 0;
  virtual int name() const { return 1; }
};
template <class T, int N> struct square : base {
  T side[N];
  explicit square(T t) { for (T &s : side) s = t; }
  int area(point p) override { int a = 0; for (T s : side) a += static_cast<int>(s) * p.x + hidden(p.y); return a; }
  int name() const override { return N; }
  template <class U> T convert(U u) const { return static_cast<T>(u + side[0]); }
};
template <class... Ts> __forceinline int total(Ts... ts) { return (static_cast<int>(ts) + ... + sink); }
template <class F> __declspec(noinline) int apply(F f, int n) { int s = 0; for (int i = 0; i < n; i++) s += f(i); return s; }
enum class colour : short { red, green };
template <colour C, class T> struct coloured { static __declspec(noinline) int value(T t) { return t * static_cast<int>(C) + sink; } };
} // namespace shapes

struct guard { int *p; explicit guard(int *q) : p(q) { ++*p; } ~guard() { --*p; sink--; } };
struct failure { int code; };

__declspec(noinline) int thrower(int x) {
  int n = 0;
  guard g(&n);
  if (x > 3)
    throw failure{x};
  if (x > 1)
    throw x;
  return n + x;
}

__declspec(noinline) int catcher(int x) {
  int depth = 0;
  try {
    guard g(&depth);
    return thrower(x) + depth;
  } catch (failure &f) {
    sink = f.code;
    return f.code + depth;
  } catch (int i) {
    guard g(&depth);
    try {
      return thrower(i + 1);
    } catch (...) {
      sink = 9;
    }
  }
  return depth;
}

template <int N> struct deep { static __forceinline int down(int x) { sink += N; return deep<N - 1>::down(x + N) + sink; } };
template <> struct deep<0> { static __forceinline int down(int x) { return shapes::hidden(x); } };

int member(int (shapes::base::*f)() const, shapes::base &b) { return (b.*f)(); }

extern "C" int start() {
  using namespace shapes;
  square<int, 4> s(2);
  square<short, 9> t(3);
  base *list[] = {&s, &t};
  int sum = 0;
  for (base *b : list)
    sum += b->area(point{1, 2} + point{3, 4}) + b->name() + member(&base::name, *b);
  sum += s.convert(2L) + t.convert('c') + total(1, 2L, 'x', short(3));
  sum += apply([&](int i) { return i * sum + deep<3>::down(i); }, 4);
  sum += apply([](auto i) { return deep<6>::down(i) - 1; }, 5);
  sum += coloured<colour::green, long>::value(4) + coloured<colour::red, unsigned char>::value(4);
  base *made = new square<long, 2>(sum);
  sum += made->name();
  delete made;
  return sum + catcher(sum);
}
