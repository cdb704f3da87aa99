// SPDX-License-Identifier: Apache-2.0
// A null pointer is read below qsort, whose frames are those of the C library.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static int deepest(volatile int *p, int n) { return *p + n; }

__attribute__((noinline)) static int middle(int n) {
	volatile int x = n;
	return deepest((int *)(long)(x - n), n) + x;
}

__attribute__((noinline)) static int compare(const void *a, const void *b) { return middle(*(const int *)a) - *(const int *)b; }

int main(void) {
	int v[4] = {3, 1, 2, 0};
	qsort(v, 4, sizeof *v, compare);
	printf("%d\n", v[0]);
	return 0;
}
