// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// kernelsOfSource is how many kernels the generated source has.
const kernelsOfSource = 24

// source is the source of CUDA, or of C++ for clang, with kernels that inline functions in each other, call functions that are not inlined, and recur. No two are alike.
func source() string {
	var b strings.Builder
	b.WriteString(`#include "parts.cuh"
`)
	for i := range kernelsOfSource {
		fmt.Fprintf(&b, `
INLINE int step%[1]d(int a, int b) {
  int s = twice(a + %[1]d);
  if (b > %[2]d)
    s += least(a, b);
  return s;
}

INLINE float mix%[1]d(const float *p, int n, float f) {
  float s = 0;
  for (int k = 0; k < n; k += %[2]d)
    s += part<%[3]d>(p + k, f) * step%[1]d(k, n);
  return s;
}

APART int walk%[1]d(const int *p, int n) {
  int s = 0;
  while (n > %[1]d) {
    s ^= step%[1]d(p[n], s);
    n -= %[2]d;
  }
  return s;
}

APART int again%[1]d(int n) {
  if (n < 2)
    return twice(n);
  return again%[1]d(n - 1) + again%[1]d(n - %[2]d);
}

KERNEL void kernel%[1]d(int *p, float *q, int n) {
  int at = place(n);
  p[at] = step%[1]d(p[at], n);
  if (n > %[1]d)
    q[at] = mix%[1]d(q, n, q[at]);
  else
    p[n] = walk%[1]d(p, n) + again%[1]d(n);
}
`, i, 2+i%5, 1+i%4)
	}
	return b.String()
}

// parts is the header of the source.
const parts = `#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define INLINE static __device__ __forceinline__
#define INLINE_WHOLE __device__ __forceinline__
#define APART static __device__ __noinline__
#else
#define KERNEL extern "C" __attribute__((device_kernel))
#define INLINE static inline __attribute__((always_inline))
#define INLINE_WHOLE inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#endif

INLINE int twice(int a) { return a * 2 + 1; }

INLINE int least(int a, int b) {
  int low = a < b ? a : b;
  return twice(low) - low;
}

template <int N> INLINE float part(const float *p, float f) {
  float s = p[N] * f;
  return part<N - 1>(p, s) + s;
}

template <> INLINE_WHOLE float part<0>(const float *p, float f) { return *p - f; }

#ifdef __CUDACC__
INLINE int place(int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  return least(at, n);
}
#else
INLINE int place(int n) {
  int at = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  return least(at, n);
}
#endif
`

// cubSource has kernels of CCCL, whose chains of inlined calls are long.
const cubSource = `#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>

template <int N> __device__ void sums(const int *in, int *out) {
  using Scan = cub::BlockScan<int, N>;
  __shared__ typename Scan::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; i++)
    items[i] = in[threadIdx.x * 4 + i];
  Scan(storage).ExclusiveSum(items, items);
  for (int i = 0; i < 4; i++)
    out[threadIdx.x * 4 + i] = items[i];
}

template <int N> __device__ void order(int *keys) {
  using Sort = cub::BlockRadixSort<int, N, 4>;
  __shared__ typename Sort::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; i++)
    items[i] = keys[threadIdx.x * 4 + i];
  Sort(storage).Sort(items);
  for (int i = 0; i < 4; i++)
    keys[threadIdx.x * 4 + i] = items[i];
}

template <int N> __device__ void most(const float *in, float *out) {
  using Reduce = cub::BlockReduce<float, N>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(in[threadIdx.x]);
  if (threadIdx.x == 0)
    *out = sum;
}

#define KERNELS(N)                                                                      \
  extern "C" __global__ void sums##N(const int *in, int *out) { sums<N>(in, out); }     \
  extern "C" __global__ void order##N(int *keys) { order<N>(keys); }                    \
  extern "C" __global__ void most##N(const float *in, float *out) { most<N>(in, out); }

KERNELS(64)
KERNELS(128)
KERNELS(256)
`
