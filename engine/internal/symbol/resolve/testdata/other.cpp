#include "shapes.h"

volatile int sink;

namespace shapes {
static __attribute__((noinline)) int clone_me(int n, int unused) {
  (void)unused;
  int r = 0;
  for (int i = 0; i < n; i++) r += step(i, r);
  return r;
}

__attribute__((noinline)) int other(int n) { return clone_me(n, 5) + clone_me(n + 1, 5) + Twice<long>::of(n); }
}  // namespace shapes
