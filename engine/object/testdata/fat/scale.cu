__global__ void scale(float *p, float by) { p[threadIdx.x] *= by; }
