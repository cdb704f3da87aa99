/* SPDX-License-Identifier: Apache-2.0
 *
 * Crashes four calls below main: it reads at null ("data"), or calls there ("call"). */
#include <string.h>

#ifndef ROOM
#define ROOM 24
#endif
#define NOINLINE __attribute__((noinline, noclone))

typedef int function(int);

NOINLINE int reads(int *from) { return *(volatile int *)from + 1; }

NOINLINE int calls(function *to) { return to(1) + 1; }

NOINLINE int step(int left, int isCall, void *null) {
	volatile char room[ROOM];
	room[left] = (char)left;
	if (left)
		return step(left - 1, isCall, null) + room[left];
	return (isCall ? calls((function *)null) : reads(null)) + room[left];
}

int main(int argc, char **argv) {
	return step(2, argc > 1 && !strcmp(argv[1], "call"), argc > 5 ? argv : 0) + 1;
}
