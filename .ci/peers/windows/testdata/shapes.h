// SPDX-License-Identifier: Apache-2.0
extern volatile int sink;
int other(int x);

static inline int from_header(int x) {
  int y = x ^ 5;
  for (int i = 0; i < x; i++)
    y += sink + i;
  return y;
}
