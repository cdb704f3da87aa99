// A kernel that has worn parts measured, by calls that are not inlined. Of HIP's
// headers only three names are needed.

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __noinline__ __attribute__((noinline))

extern "C" {

__device__ __noinline__ int measure(volatile int *side)
{
	int worst = 0;
	for (int left = side[0]; left > 0; left--) {
		int wear = side[left];
		if (wear > worst)
			worst = wear;
	}
	return worst;
}

__device__ __noinline__ int compare_sides(volatile int *part)
{
	int front = measure(part);
	int back = measure(part + 8);
	return front > back ? front : back;
}

__global__ void inspect(volatile int *wear, volatile int *parts)
{
	int id = __builtin_amdgcn_workitem_id_x();
	if (wear[id] > 10)
		wear[id] = compare_sides(parts + 16 * id);
}

}
