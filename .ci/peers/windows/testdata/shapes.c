// SPDX-License-Identifier: Apache-2.0
// C with calls of every kind, for programs without a library.
#include "shapes.h"

volatile int sink;

static int leaf(int x) { return x * 3 + sink; }

__attribute__((noinline)) int spill(int a, int b, int c, int d, int e, int f, int g) {
  volatile int list[40];
  for (int i = 0; i < 40; i++)
    list[i] = a + b * i + c;
  return list[d & 31] + list[e & 31] + f + g;
}

static __forceinline int inner(int x) {
  sink += x;
  return leaf(x) + 1;
}
static __forceinline int middle(int x) {
  int y = inner(x);
  return y + inner(y + 1);
}
static __forceinline int outer(int x) { return middle(x) + middle(x + 2); }

__attribute__((noinline)) int chain(int x) {
  int y = outer(x);
  if (y & 1)
    y += outer(y);
  return y;
}

__attribute__((noinline)) int choose(int x) {
  switch (x) {
  case 0: return spill(1, 2, 3, 4, 5, 6, 7);
  case 1: return chain(x);
  case 2: return leaf(9);
  case 3: sink = 4; return 1;
  case 4: return sink ? chain(2) : 8;
  case 5: return spill(x, x, x, x, x, x, x);
  case 6: return sink * sink;
  default: return -1;
  }
}

__attribute__((noinline)) int recurse(int n) { return n <= 0 ? sink : recurse(n - 1) + recurse(n - 2) + 1; }

typedef int (*callback)(int);
static callback table[] = {chain, choose, recurse};

__attribute__((noinline)) int through(int i, int x) { return table[i % 3](x) + 1; }

// Folded into one by the linker, where it folds.
__attribute__((noinline)) int same_one(int x) { return x * 77 + sink; }
__attribute__((noinline)) int same_two(int x) { return x * 77 + sink; }

#line 700 "generated.y"
__attribute__((noinline)) int generated(int x) {
  int y = x + 1;
  return y * sink;
}
#line 70 "shapes.c"

__attribute__((noinline, cold)) int rare(int x) { sink = x; return spill(x, 1, 2, 3, 4, 5, 6); }

int start(void) {
  int sum = 0;
  for (int i = 0; i < 8; i++) {
    sum += choose(i) + through(i, 3) + generated(i) + from_header(i) + same_one(i) + same_two(i);
    if (__builtin_expect(sum == 77, 0))
      sum += rare(sum);
  }
  return sum + other(sum);
}
