/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler of SIGUSR1, which was raised three calls below main, aborts. */
#include <signal.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE static void handler(int number) {
	if (number)
		abort();
}

NOINLINE int step(int left) {
	volatile char room[24];
	room[left] = (char)left;
	if (left)
		return step(left - 1) + room[left];
	return raise(SIGUSR1) + room[left];
}

int main(void) {
	struct sigaction action = {.sa_handler = handler};
	sigaction(SIGUSR1, &action, NULL);
	return step(2);
}
