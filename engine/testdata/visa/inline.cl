// Calls that are inlined: one way leads from k to twice, two lead from fold.
static int twice(int x) {
  int y = x * 2;
  return y + 1;
}
static int clamped(int x, int low) {
  if (x < low)
    return twice(low);
  return x - low;
}
__attribute__((noinline)) int fold(int a, __global int *p) {
  int r = twice(a) + p[a];
  if (r > 10) {
    int t = twice(r);
    r ^= t * p[t & 7];
  }
  return r;
}
__kernel void k(__global int *out, __global int *in) {
  int i = get_global_id(0);
  int v = in[i];
  for (int j = 0; j < v; j++) {
    int q = clamped(in[j], v);
    out[i] += fold(q, in);
  }
}
