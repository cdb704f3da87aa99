// A kernel whose work-items add up the wear of their tray of eight parts, by the
// work-group's local memory. Of HIP's headers only two names are needed.

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

extern "C" __global__ void total(const volatile int *wear, volatile int *totals)
{
	__shared__ int worn[128];
	int id = __builtin_amdgcn_workitem_id_x();
	worn[id] = wear[id];
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
	int sum = 0;
#pragma clang loop vectorize(disable) unroll(disable)
	for (int i = id & ~7; i <= id; i++)
		sum += worn[i];
	if (sum > 200)
		__builtin_trap();
	totals[id] = sum;
}
