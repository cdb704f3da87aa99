/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops calls below main: it calls through null ("call"), a handler of a null read
 * traps ("handler"), or it reads at null ("data"). */
#include <signal.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef int function(int);

__thread int before[5];
__thread int mark = 1;

NOINLINE int reads(int *from) { return *(volatile int *)from + mark; }

NOINLINE int calls(function *to) { return to(1) + 1; }

NOINLINE void handler(int signal) {
	mark += signal;
	__builtin_trap();
}

NOINLINE int step(int left, int isCall, void *null) {
	volatile char room[24];
	room[left] = (char)left;
	if (left)
		return step(left - 1, isCall, null) + room[left];
	return (isCall ? calls((function *)null) : reads(null)) + room[left];
}

int main(int argc, char **argv) {
	before[0] = argc;
	before[4] = 42;
	mark = 4711;
	if (argc > 1 && !strcmp(argv[1], "handler"))
		signal(SIGSEGV, handler);
	return step(2, argc > 1 && !strcmp(argv[1], "call"), argc > 5 ? argv : 0) + 1;
}
