// Functions with few registers and many, with arrays in local memory and without, of integers
// alone: they are executed instruction by instruction.
__device__ __noinline__ int leaf(const int *p, int a) { return p[a & 7] + a; }

__device__ __noinline__ int recurse(int n, const int *p, int k) {
    int buffer[8];
    for (int i = 0; i < 8; i++)
        buffer[i] = p[i] + k * i;
    if (n <= 0)
        return leaf(p, k) + buffer[k & 7];
    int r = recurse(n - 1, p, k + 1) + recurse(n - 2, p, k);
    return r + buffer[n & 7] + leaf(p, r) + k;
}

__device__ __noinline__ int many(int n, const int *p) {
    int a = p[0] + n, b = p[1] - n, c = p[2] + n, d = p[3] - n, e = p[4] + n, f = p[5] - n;
    int r = leaf(p, a) + leaf(p, b);
    if (n > 0)
        r += many(n - 1, p + (n & 1));
    return r + a + b + c + d + e + f + leaf(p, c + d);
}

extern "C" __global__ void kern(const int *p, int *result, int n) {
    result[0] = recurse(n, p, 1) + many(n, p);
}
