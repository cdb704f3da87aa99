// Device code of many shapes, and a program of the host with that code inside it.
// The tests compile it: clang++-22 -x hip --offload-arch=gfx90a -nogpuinc -nogpulib -g
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline __attribute__((noinline))

typedef __SIZE_TYPE__ size_t;

struct dim3 {
  unsigned x, y, z;
};

// What the HIP runtime has, as far as compiled code asks for it.
extern "C" {
int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *) { return 0; }
unsigned __hipPushCallConfiguration(dim3, dim3, size_t, void *) { return 0; }
unsigned __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void **) { return 0; }
const void *volatile registered; // keeps the code of the device in the program
void **__hipRegisterFatBinary(const void *binary) {
  registered = binary;
  return 0;
}
void __hipUnregisterFatBinary(void **) {}
void __hipRegisterFunction(void **, const void *, char *, const char *, unsigned, void *, void *, void *, void *, int *) {}
void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int) {}
}

namespace shapes {

template <typename T> struct Point {
  T x, y;
  __device__ Point operator+(const Point &o) const { return {x + o.x, y + o.y}; }
  __device__ T dot(const Point &o) const { return x * o.x + y * o.y; }
};

template <typename T> static inline __device__ T limit(T v, T most) {
  if (v > most)
    return most;
  return v;
}

// Calls that are inlined into one another.
static inline __device__ float weigh(const Point<float> &p) {
  Point<float> q = p + Point<float>{1.0f, -1.0f};
  return limit(q.dot(p), 100.0f);
}

// Two that call each other.
__device__ __noinline int odd(int n, const int *p);
__device__ __noinline int even(int n, const int *p) {
  if (n == 0)
    return p[0];
  return odd(n - 1, p) + p[n & 3];
}
__device__ __noinline int odd(int n, const int *p) {
  if (n == 0)
    return p[1];
  return even(n - 1, p) ^ n;
}

// More values across a call than there are registers for: some are spilled.
__device__ __noinline float crowd(const float *f, const int *p, int n) {
  float v[72];
#pragma unroll
  for (int i = 0; i < 72; i++)
    v[i] = f[i * n] * 0.5f;
  int k = even(n, p);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 72; i++)
    sum += v[i] / v[(i * 5 + 3) % 72] + (float)k;
  return sum;
}

// A frame whose size is known at run time.
__device__ __noinline int dynamic(int n, const int *p) {
  int *room = (int *)__builtin_alloca(n * sizeof(int));
  for (int i = 0; i < n; i++)
    room[i] = p[i] + even(i, p);
  return room[n / 2];
}

// More arguments than registers for them.
struct Large {
  int a[40];
};
__device__ __noinline int sum(Large l, int n) {
  int s = 0;
  for (int i = 0; i < n; i++)
    s += l.a[i % 40];
  return s;
}

template <int N> __device__ __noinline int choose(int n, const int *p) {
  switch (n) {
  case 0:
    return p[N];
  case 1:
    return even(n, p);
  case 5:
    return odd(n, p) - N;
  }
  return N;
}

} // namespace shapes

extern __shared__ int given[];
__device__ int (*table[2])(int, const int *) = {shapes::even, shapes::odd};

// Divergent regions, inlined calls inside of loops, memory of the work-group, and
// calls through pointers.
__global__ void paint(float *out, const int *p, int n) {
  __shared__ float tile[64];
  unsigned id = __builtin_amdgcn_workitem_id_x();
  shapes::Point<float> at = {(float)id, (float)n};
  auto step = [&](int i) {
    at = at + shapes::Point<float>{(float)i, 2.0f};
    return shapes::weigh(at);
  };
  float sum = 0;
  for (int i = 0; i < p[id]; i++) {
    if (i & 1)
      sum += step(i);
    else if (p[i] > 7)
      sum -= shapes::limit(step(-i), 3.0f);
  }
  tile[id & 63] = sum;
  given[id & 63] = table[id & 1](n, p);
  __builtin_amdgcn_s_barrier();
  shapes::Large l;
  for (int i = 0; i < 40; i++)
    l.a[i] = p[i + id];
  out[id] = tile[(id + 1) & 63] + (float)shapes::sum(l, n) + (float)given[(id + 2) & 63];
}

__global__ void gather(float *out, const float *f, const int *p, int n) {
  unsigned id = __builtin_amdgcn_workitem_id_x();
  if (p[id] > n)
    out[id] = shapes::crowd(f, p, n);
  else
    out[id] = (float)(shapes::choose<3>(n, p) + shapes::choose<4>(n, p) + shapes::dynamic(n & 15, p));
}

int main() {
  paint<<<dim3{1, 1, 1}, dim3{64, 1, 1}, 64 * sizeof(int), 0>>>(0, 0, 0);
  gather<<<dim3{1, 1, 1}, dim3{64, 1, 1}, 0, 0>>>(0, 0, 0, 0);
  return 0;
}
