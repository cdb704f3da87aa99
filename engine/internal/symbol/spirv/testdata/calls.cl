// Calls that are inlined, in blocks; TestChainsOfCalls has the chains.
#define TWICE(x) ((x) + (x))
static inline __attribute__((always_inline)) int leaf(int x) {
  int r = TWICE(x);
  return r + 1;
}
static inline __attribute__((always_inline)) int middle(int y) {
  int s = 0;
  for (int i = 0; i < y; i++) {
    int t = leaf(i);
    if (t > 3) {
      int deep = leaf(t);
      s += deep;
    }
  }
  return s;
}
__attribute__((noinline)) int plain(int z) {
  return leaf(z);
}
__kernel void calls(__global int *out, int n) {
  out[0] = middle(n);
  out[1] = plain(n);
  {
    int block = n * 3;
    out[2] = block;
  }
}
