// Variables of a build with -G: in registers, in local, shared, constant and global memory, and
// parameters.
struct S { int a; float b[3]; };
__device__ __noinline__ int rec(int n, int *p, S s) {
  int buf[4]; for (int i = 0; i < 4; i++) buf[i] = p[i] * s.a;
  if (n <= 0) return buf[n & 3];
  S t = s; t.a++;
  return rec(n - 1, p, t) + buf[1];
}
__constant__ int cc[4];
__device__ int gg;
extern "C" __global__ void kern(int *p, int n, S s) {
  __shared__ int sh[32];
  int t = threadIdx.x; bool flag = t > n; double d = t * 0.5; unsigned char c = t;
  sh[t] = p[t] + cc[1]; __syncthreads();
  p[t] = rec(n, p, s) + sh[31 - t] + gg + (flag ? (int)d : c);
}
