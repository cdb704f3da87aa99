// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"
struct Hidden { int secret; Hidden *next; };
static Hidden first = {1, nullptr};
Hidden *hidden = &first;
static int target = 6;
static __attribute__((noinline)) int helper(int a) { Hidden local = {a, &first}; return bytes(&local) + target; }
int unusedOne(int a) { Box<int> box = {a}; return box.twice(a) + helper(a); }
int outside(int a) { Box<int> box = {a}; Hidden next = {a, hidden}; return a > 5 ? shared(a - 1) + next.secret : box.twice(a) + helper(a); }
int unusedTwo(int a) { static int here = 1; return here + a; }
int bytes(void *p) { int sum = 0; for (int i = 0; i < 8; i++) sum += static_cast<char *>(p)[i]; return sum; }
