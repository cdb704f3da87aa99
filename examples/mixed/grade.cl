// A kernel whose lanes part ways: an IF, in whose THEN part a call is inlined
// that has an IF of its own.

static inline __attribute__((always_inline)) void repair(global volatile int *part, int wear)
{
	part[0] = wear;
	if (wear > 20) {
		part[1] = wear * 3;
	} else {
		part[2] = wear + 7;
		__builtin_amdgcn_s_sleep(1);
	}
	part[0] = 0;
}

kernel void grade(global volatile int *wear, global volatile int *parts)
{
	int id = __builtin_amdgcn_workitem_id_x();
	int w = wear[id];
	global volatile int *part = parts + 4 * id;
	if (w > 10) {
		part[3] = w;
		repair(part, w);
		part[3] = 0;
	} else {
		part[3] = -w;
	}
	part[0] = w;
}
