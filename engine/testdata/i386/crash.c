// SPDX-License-Identifier: Apache-2.0

// Programs of 32-bit x86 that fail in a way each, behind functions of several conventions.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct big {
	int v[8];
};

static volatile int *target;

NOINLINE int fail(volatile int *p, int depth) {
	int local = depth * 3;
	*p = local;
	return local + depth;
}

NOINLINE struct big structure(int n, volatile int *p) {
	struct big b;
	memset(&b, n, sizeof b);
	b.v[1] = fail(p, n);
	return b;
}

NOINLINE int middle(int n, volatile int *p) {
	char text[64];
	snprintf(text, sizeof text, "%d", n);
	struct big b = structure(n, p);
	return b.v[n & 7] + text[0];
}

NOINLINE __attribute__((fastcall)) int fast(int a, int b, int c, volatile int *p) { return middle(a + b + c, p) + 1; }
NOINLINE __attribute__((stdcall)) int standard(int a, int b, volatile int *p) { return fast(a, b, 3, p) + 1; }

static void handler(int number, siginfo_t *info, void *context) {
	(void)number, (void)info, (void)context;
	standard(4, 5, target);
}

static void old_handler(int number) { standard(number, 2, target); }

static int compare(const void *a, const void *b) {
	if (*(const int *)a == 3)
		standard(1, 2, target);
	return *(const int *)a - *(const int *)b;
}

static void *thread(void *unused) {
	(void)unused;
	sleep(1);
	standard(7, 8, target);
	return 0;
}

int main(int argc, char **argv) {
	int v[] = {5, 3, 1, 4};
	struct sigaction action;
	pthread_t threads[2];
	volatile int zero = 0;
	void (*volatile nowhere)(void) = 0;
	switch (argc > 1 ? atoi(argv[1]) : 0) {
	case 0:
		return standard(argc, 2, target);
	case 1:
		memset(&action, 0, sizeof action);
		action.sa_sigaction = handler;
		action.sa_flags = SA_SIGINFO;
		sigaction(SIGUSR1, &action, 0);
		raise(SIGUSR1);
		break;
	case 2:
		signal(SIGUSR1, old_handler);
		raise(SIGUSR1);
		break;
	case 3:
		qsort(v, 4, sizeof v[0], compare);
		break;
	case 4:
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], 0, thread, 0);
		pthread_join(threads[0], 0);
		break;
	case 5:
		abort();
	case 6:
		return argc / zero;
	case 7:
		nowhere();
	}
	return 0;
}
