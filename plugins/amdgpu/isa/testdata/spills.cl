// Code of many kinds: calls, recursion, an indirect-looking switch, spills of
// both files, local and private memory, atomics, doubles, halves, 64-bit
// integers, vectors and work-group operations.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

__attribute__((noinline)) int walk(__global int *p, int n) {
	if (n <= 0)
		return p[0];
	int a = p[n & 15] + walk(p, n - 1);
	return a * 3 + walk(p, n - 2);
}

__attribute__((noinline)) double mix(double x, double y, __global float *f) {
	double keep[6];
	for (int i = 0; i < 6; i++)
		keep[i] = x * i + y / (i + 1);
	f[1] = walk((__global int *)f, (int)x & 3);
	double sum = 0;
	for (int i = 0; i < 6; i++)
		sum += keep[((int)y + i) % 6] * keep[i];
	return sum;
}

__attribute__((noinline)) float16 wide(float16 a, float16 b, __global float16 *out) {
	float16 c = a * b + (float16)(2.0f), d = a - b, e = a / (b + 1.0f), g = a * b + d;
	out[0] = c;
	walk((__global int *)out, 2);
	out[1] = d;
	walk((__global int *)out, 1);
	out[2] = e + g;
	walk((__global int *)out, 3);
	return c * d + e * g;
}

__kernel void work(__global int *p, __global float *f, __global double *d, __global half *h, __global float16 *v, __global long *l, __global char *b, __local int *shared,
                   __local ulong *wide_shared, int n) {
	int id = __builtin_amdgcn_workitem_id_x();
	shared[id & 255] = p[id];
	wide_shared[id & 63] = (ulong)l[id] * 0x123456789abcdefUL;
	__builtin_amdgcn_s_barrier();
	int private_values[40];
	for (int i = 0; i < 40; i++)
		private_values[i] = shared[(id + i) & 255] * i;
	__atomic_fetch_add(&p[id & 7], 3, __ATOMIC_RELAXED);
	__atomic_fetch_xor(&shared[n & 255], id, __ATOMIC_RELAXED);
	l[id] = (l[id] << (n & 63)) / (l[id + 1] | 1) + (long)wide_shared[(id + 1) & 63];
	switch (n) {
	case 0: d[id] = mix(d[id], d[id + 1], f); break;
	case 1: v[id] = wide(v[id], v[id + 1], v); break;
	case 2: p[id] = walk(p, id & 7); break;
	case 3: h[id] = h[id + 1] * h[id + 2] + (half)id; break;
	case 4: b[id] = b[id + 1] * b[id + 2] + b[id + 3]; break;
	case 5:
		while (p[id] > id)
			p[id] -= private_values[p[id] & 31];
		break;
	default: f[id] = f[id] > 1.5f ? f[id] * 0.5f : (float)(d[id] * 0.25); break;
	}
	p[id + 1] = private_values[n & 31] + __builtin_amdgcn_readfirstlane(p[0]) + __builtin_amdgcn_ds_bpermute(id, n);
}
