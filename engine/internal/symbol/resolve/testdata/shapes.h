#pragma once
extern volatile int sink;

namespace shapes {
template <class T>
struct Twice {
  static T of(T v) { return v + v + T(sink); }
};

inline int leaf(int a, int b) {
  if (a % 3 == 0) sink += a * b;
  return a ^ (b + sink);
}

inline int step(int a, int b) {
  int r = leaf(a, b);
  if (r & 1) r += leaf(b, a);
  return r;
}

int other(int n);
}  // namespace shapes
