// Calls within a kernel's section: recursion, a leaf, a pointer to a function, and a division
// that calls a subroutine of the compiler.
__device__ __noinline__ int leaf(int a, int *p) { return p[a] + a; }

__device__ __noinline__ int recurse(int n, int *p, int k) {
  int buf[8];
  for (int i = 0; i < 8; i++) buf[i] = p[i] * k;
  if (n <= 0) return leaf(k, p) + buf[k & 7];
  int r = recurse(n - 1, p, k + 1) + recurse(n - 2, p, k);
  return r * buf[n & 7] + leaf(r, p) + k;
}

typedef int (*function)(int, int *);
__device__ function table[2] = {leaf, leaf};

extern "C" __global__ void kern(int *p, int n, float *q) {
  int t = threadIdx.x;
  q[t] = q[t] / (float)n;
  p[t] = recurse(n + t, p, t) + table[n & 1](t, p);
}
