// SPDX-License-Identifier: Apache-2.0

// A program without a library: inlined calls in one another, templates, folded functions, a local
// function, functions of C.

extern "C" int _fltused = 0;
static volatile int sink;

namespace ns {
template <class T> struct Box {
  T value;
  __declspec(noinline) T get(int k) const {
    sink = k;
    return value * k;
  }
  int small(int a) const {
    sink = a;
    return value + a;
  }
};

static inline __attribute__((always_inline)) int deep(int x) {
  sink += x;
  return x * 3;
}

static inline __attribute__((always_inline)) int middle(int x) {
  int r = deep(x + 1);
  sink = r;
  return r + deep(x);
}

__declspec(noinline) static int local(int n) { return n > 2 ? middle(n) : 7; }

__declspec(noinline) int same(int n) { return n * 12345 + sink; }
__declspec(noinline) int equal(int n) { return n * 12345 + sink; }

struct Base {
  virtual int run(int n) { return n + sink; }
};
struct Other {
  virtual int go(int n) { return n - sink; }
};
struct Both : Base, Other {
  int go(int n) override { return n * sink; }
};

int outer(int n) {
  Box<int> b{n};
  Box<short> s{static_cast<short>(n)};
  int sum = b.get(2) + b.small(3) + s.get(1);
  for (int i = 0; i < n; i++)
    sum += middle(i);
  auto last = [&](int k) __attribute__((noinline)) { return sum + middle(k); };
  return sum + local(n) + same(n) + equal(n) + last(4);
}
} // namespace ns

ns::Both both;

#line 7 "included.inc"
extern "C" __declspec(noinline) int plain(int a) { return a + sink; }
extern "C" __declspec(noinline) int __stdcall standard(int a) { return a - sink; }
extern "C" __declspec(noinline) int __fastcall fast(int a, int b) {
  return a -
#line 70 "other.inc"
         b * sink;
}
#line 70 "program.cpp"
extern "C" int entry() {
  return ns::outer(sink) + plain(2) + standard(1) + fast(1, 2) +
         static_cast<ns::Other &>(both).go(3) + both.run(1);
}

extern "C" void _purecall() {}
void operator delete(void *, decltype(sizeof(0))) {}
