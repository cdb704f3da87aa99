#include "sum.cuh"
extern __device__ int loop(int *p, int n);
__global__ void third(int *p, int n) { p[threadIdx.x] = loop(p, n) + clamp(n, 7); }
