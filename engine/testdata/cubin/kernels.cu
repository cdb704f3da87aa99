// Two kernels of one cubin, and a function that is inlined in both.
__device__ inline float weigh(float v, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++)
    sum += v * __sinf(sum + i);
  return sum;
}

extern "C" __global__ void grade(float *parts, int n) {
  parts[threadIdx.x] = weigh(parts[threadIdx.x], n);
}

extern "C" __global__ void repair(float *parts, int n) {
  if (parts[threadIdx.x] < 0)
    parts[threadIdx.x] = -weigh(parts[threadIdx.x], n / 2);
}
