__device__ __forceinline__ int square(int a) { return a * a + 1; }
template <typename T> __device__ __forceinline__ T clamp(T a, T low) { return a < low ? low : square(a); }
