// Kernels that measure worn parts.

struct Part {
    unsigned side[2][8]; // the count of measurements, then these
};

// wear adds up how worn a side is, from its measurement number left on: half of them in each call.
__device__ __noinline__ int wear(const unsigned *side, int first, int last) {
    if (first == last)
        return static_cast<int>(side[first]);
    const int middle = (first + last) / 2;
    return wear(side, first, middle) + wear(side, middle + 1, last);
}

__device__ __forceinline__ int worst(int a, int b) {
    return a < b ? b : a;
}

__device__ __noinline__ int compare_sides(const Part *part) {
    int most = 0;
    for (const auto &side : part->side)
        most = worst(most, wear(side, 1, static_cast<int>(side[0])));
    return most;
}

extern "C" __global__ void inspect(const Part *parts, int *result, int count) {
    const int id = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (id >= count)
        return;
    if (id % 2 == 0)
        result[id] = compare_sides(parts + id);
    __syncwarp();
    result[id] += 1;
}
