// SPDX-License-Identifier: Apache-2.0

// A chain of calls, of which a test makes the stack by hand.

static volatile int sink;

__attribute__((noinline)) int leaf(int n) {
  sink = n;
  return sink + 1;
}

__attribute__((noinline)) int inner(int n) {
  int room[12];
  for (int i = 0; i < 12; i++)
    room[i] = leaf(n + i);
  return room[n & 7];
}

__attribute__((noinline)) int middle(int n, long a, long b) {
  volatile long kept = a * b;
  int r = inner(n) + (int)kept;
  return r + sink;
}

__attribute__((noinline)) int outer(int n) {
  int r = middle(n, 3, 4);
  sink = r;
  return r * 2;
}

int main(int argc, char **argv) {
  (void)argv;
  int r = outer(argc);
  sink = r;
  return r;
}
