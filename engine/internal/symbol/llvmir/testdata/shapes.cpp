// Types, scopes and inlined calls of C++, and code that throws.
namespace outer {
inline namespace v1 {
enum class Mode : unsigned char { Off, On = 200 };
template <typename T, int N> struct Box {
  T items[N];
  using value_type = T;
  T &operator[](int i) { return items[i]; }
  template <class F> void each(F f) { for (auto &x : items) f(x); }
};
} // namespace v1
namespace {
struct Base { virtual ~Base() {} virtual int area() const = 0; protected: int id = 1; };
} // namespace
struct Square final : Base {
  explicit Square(int s) : side(s) {}
  int area() const override { return side * side; }
  static int count;
  int side;
  int Square::*member = &Square::side;
};
int Square::count = 0;
struct Guard { int *p; Guard(int *q) : p(q) { ++*p; } ~Guard() { --*p; } };
int risky(int x) { if (x > 3) throw x; return x + 1; }
} // namespace outer
using outer::Square;
namespace alias = outer;

static inline int leaf(int a) { int b = a * 7; return b ^ 3; }
static inline int middle(int a) { return leaf(a) + leaf(a + 1); }

int guarded(int n) {
  int live = 0;
  try {
    outer::Guard g(&live);
    n = outer::risky(n);
    for (int i = 0; i < 3; i++) {
      outer::Guard h(&live);
      n += outer::risky(i + n);
    }
  } catch (int e) {
    n = e;
  } catch (const char *text) {
    n = text[0];
  }
  return n + live;
}

template <typename... A> int sum(A... a) { return (0 + ... + a); }

struct Pair { short a; char b; };
int boxes(outer::Box<int, 4> &box, Pair p, decltype(nullptr)) {
  using namespace outer;
  int total = 0;
  box.each([&total, k = p.b](int x) { total += middle(x) + k; });
  auto [first, second] = p;
  Square s(total);
  const outer::Base &b = s;
  Mode mode = total > 5 ? Mode::On : Mode::Off;
  static int calls;
  calls++;
  return sum(total, first, second, b.area(), (int)mode) + calls + Square::count + (int)sizeof(box);
}

long double constants(bool b, char16_t c) {
  const long double pi = 3.25L;
  unsigned long long big = 0xfedcba9876543210ull;
  return b ? pi + c : pi * big;
}
