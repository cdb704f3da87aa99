// A kernel that inspects worn parts.

struct Part {
    unsigned side[2][8]; // of each side the count of measurements, then these
};

// wear adds up the measurements of a side: one half, and then the other.
__device__ __noinline__ int wear(const unsigned *side, int first, int last) {
    if (first == last)
        return static_cast<int>(side[first]);
    const int middle = (first + last) / 2;
    return wear(side, first, middle) + wear(side, middle + 1, last);
}

__device__ __forceinline__ int worse(int most, const unsigned *side) {
    const int sum = wear(side, 1, static_cast<int>(side[0]));
    return most < sum ? sum : most;
}

__device__ __noinline__ int compare_sides(const Part *part) {
    int most = 0;
    for (const auto &side : part->side)
        most = worse(most, side);
    return most;
}

extern "C" __global__ void inspect(const Part *parts, int *result, int count) {
    const int id = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (id >= count)
        return;
    if (id % 2 == 0)
        result[id] = compare_sides(parts + id);
    result[id] += 1;
}
