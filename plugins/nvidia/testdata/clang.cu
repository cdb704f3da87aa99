// Variables as clang describes them, without the headers of CUDA.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
struct S { int a; float b[3]; };
__device__ int gg;
__constant__ int cc[4];
__device__ __attribute__((noinline)) int helper(int n, int *p, S s) { int buf[4]; for (int i = 0; i < 4; i++) buf[i] = p[i] * s.a; return buf[n & 3] + s.a; }
extern "C" __global__ void kern(int *p, int n, S s) { __shared__ int sh[32]; int t = n * 2; bool flag = t > 3; double d = t * 0.5; sh[t & 31] = p[t]; p[t] = helper(n, p, s) + sh[3] + gg + cc[1] + (flag ? (int)d : 0); }
