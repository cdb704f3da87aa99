// Calls between sections, which nvlink puts together: their return addresses are absolute.
// With -DOTHER it is the other half.
#ifdef OTHER
extern __device__ int mine(int n, int *p);
__device__ int other(int n, int *p) {
  int x[4] = {p[0], p[1], n, 3};
  return mine(n - 2, p) + p[n] + x[n & 3];
}
#else
extern __device__ int other(int n, int *p);
__device__ __noinline__ int mine(int n, int *p) { return n > 3 ? other(n - 1, p) * p[n] : p[0]; }
extern "C" __global__ void kern(int *p, int n) { p[threadIdx.x] = other(n, p) + mine(n, p); }
#endif
