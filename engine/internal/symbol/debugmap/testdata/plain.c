/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes.h"
int global = 42, empty;
static int counter = 3, table[9] = {1, 2, 3};
const char *const text = "text";
static const struct Point origin = {1, 2, 0.5};
_Thread_local int perThread = 9;
int tentative[4];
int outside(int);
struct Node { struct Node *next; union { int i; float f; } u; unsigned bits : 5, more : 11; char name[8]; };
static struct Node nodes[2] = {{&nodes[1], {7}, 3, 9, "one"}, {0, {8}, 4, 10, "two"}};

static inline int clamp(int a, int low, int high) { int limited = a < low ? low : a; return limited > high ? high : limited; }
static int unused(int a) { return a * global; }
__attribute__((noinline)) int dead(int a) { static int alsoDead = 5; int b = a + alsoDead++; return bytes(&b); }
__attribute__((noinline)) int folded(int a) { int b = outside(a); return b * 3; }
__attribute__((noinline)) int kept(int n, struct Point *p) {
	struct Point local = {n, n + 1, 2.5};
	int sum = 0;
	for (int i = 0; i < n; i++) {
		struct Node *node = &nodes[i & 1];
		int step = clamp(outside(i), 2, n);
		sum += step + node->u.i + table[i & 7];
		{ enum Color color = i > 3 ? blue : green; sum += outside(color); }
	}
	p->x = sum + local.y + counter++;
	return bytes(&local) + perThread + tentative[1];
}
__attribute__((noinline, cold)) void stop(int code) { outside(code); __builtin_trap(); }
__attribute__((noinline)) int leaves(int a) { if (a > 100) { outside(a); stop(a); } return outside(a + origin.x + empty); }
__attribute__((noinline)) static int variable(int n) { int array[n]; array[0] = n; return bytes(array) + outside(array[0]); }
int main(int argc, char **argv) {
	struct Point p = origin;
	(void)argv;
	return kept(argc, &p) + leaves(argc) + variable(argc + 1) + folded(argc) + (argc > 99 ? unused(argc) : 0) + (int)p.weight;
}
