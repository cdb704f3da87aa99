/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends as its argument says, calls below main. */
#define _GNU_SOURCE
#include "chain.h"
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int function(int);
typedef int ending(void *);

static function *pointer; /* what is called through a pointer */
static int *null;
static ending *ends; /* the function that ends the program */
static int ready;
static volatile int zero;

NOINLINE int t_reads(void *from) {
	ENTER;
	int n = *(volatile int *)from + 1;
	LEAVE;
	return n;
}

NOINLINE int t_calls(void *unused) {
	ENTER;
	int n = pointer(unused != 0) + 1;
	LEAVE;
	return n;
}

/* A leaf that jumps: the function that it jumps to returns to its caller. */
NOINLINE int t_jumps(void *unused) {
	ENTER;
	LEAVE;
	return pointer(unused != 0);
}

NOINLINE int t_jumps_on(void *unused) {
	ENTER;
	volatile int room[8];
	room[zero] = 1;
	int n = t_calls(unused) + room[zero];
	LEAVE;
	return n;
}

NOINLINE int t_tail(void *unused) {
	ENTER;
	LEAVE;
	return t_jumps_on(unused);
}

NOINLINE int t_aborts(void *unused) {
	ENTER;
	if (!unused)
		abort();
	LEAVE;
	return 1;
}

NOINLINE int t_traps(void *unused) {
	ENTER;
	if (!unused)
		__builtin_trap();
	LEAVE;
	return 1;
}

NOINLINE int t_alloca(void *unused) {
	ENTER;
	int size = 100 + (unused != 0) * 50;
	volatile char *room = (volatile char *)alloca(size * 17);
	room[size] = 1;
	int n = t_reads(unused) + room[size];
	LEAVE;
	return n;
}

/* A frame that one instruction cannot make. */
NOINLINE int t_large(void *unused) {
	ENTER;
	volatile char room[70000];
	room[zero] = 1;
	int n = t_reads(unused) + room[zero];
	LEAVE;
	return n;
}

NOINLINE double t_floats(void *unused) {
	ENTER;
	volatile double a = 1.5, b = 2.5, c = 3.5;
	double x = a * b, y = b * c, z = a * c;
	int n = t_reads(unused);
	LEAVE;
	return x * y + z * n;
}

NOINLINE int t_saves(void *unused) {
	ENTER;
	int a = zero + 1, b = zero + 2, c = zero + 3, d = zero + 4, e = zero + 5, f = zero + 6;
	int n = (int)t_floats(unused);
	n += a * b + c * d + e * f;
	LEAVE;
	return n;
}

NOINLINE int t_overflows(int n) {
	ENTER;
	volatile char room[200];
	room[zero] = (char)n;
	int m = n < 0 ? 0 : t_overflows(n + 1) + room[zero];
	LEAVE;
	return m;
}

NOINLINE int t_overflow(void *unused) {
	ENTER;
	int n = t_overflows(unused != 0);
	LEAVE;
	return n;
}

NOINLINE int t_recurses(int n) {
	ENTER;
	volatile char room[16];
	room[zero] = 1;
	int m = n ? t_recurses(n - 1) + room[zero] : t_reads(null);
	LEAVE;
	return m;
}

NOINLINE int t_deep(void *unused) {
	ENTER;
	int n = t_recurses(DEEP + (unused != 0));
	LEAVE;
	return n;
}

NOINLINE int t_compares(const void *a, const void *b) {
	ENTER;
	int n = a == b ? 0 : t_reads(null);
	LEAVE;
	return n;
}

NOINLINE int t_sorts(void *unused) {
	ENTER;
	int list[] = {3, 1, 2, 0, unused != 0};
	qsort(list, 5, sizeof *list, t_compares);
	int n = list[0];
	LEAVE;
	return n;
}

NOINLINE void t_handler(int number) {
	ENTER;
	if (number)
		abort();
	LEAVE;
}

static void handle(int number, int flags) {
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = t_handler;
	action.sa_flags = flags;
	sigaction(number, &action, NULL);
}

NOINLINE int t_raises(void *unused) {
	ENTER;
	int n = raise(SIGUSR1) + (unused != 0);
	LEAVE;
	return n;
}

NOINLINE int t_step(int left) {
	ENTER;
	volatile char room[24];
	room[left] = (char)left;
	int n = (left ? t_step(left - 1) : ends(null)) + room[left];
	LEAVE;
	return n;
}

/* Another function of the recursion, so that not all return addresses are equal. */
NOINLINE int t_walk(int left) {
	ENTER;
	volatile short room[40];
	room[left] = (short)left;
	int n = (left ? t_step(2) : t_step(1)) + room[left];
	LEAVE;
	return n;
}

NOINLINE void t_waits(void) {
	ENTER;
	__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	LEAVE;
}

NOINLINE int t_thread(long n) {
	ENTER;
	int m = n == 3 ? t_walk(2) : 0;
	t_waits();
	LEAVE;
	return m;
}

static void *thread(void *argument) {
	long n = (long)argument;
	begin((int)n, (uint64_t)syscall(SYS_gettid));
	return (void *)(long)t_thread(n);
}

NOINLINE int t_threads(void *unused) {
	ENTER;
	pthread_t list[4];
	for (long i = 1; i < 4; i++) {
		while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < i - 1)
			usleep(1000);
		if (i == 3) {
			usleep(20000);
			ends = t_reads;
		}
		pthread_create(&list[i], NULL, thread, (void *)i);
	}
	pthread_join(list[3], NULL);
	int n = unused != 0;
	LEAVE;
	return n;
}

static char stack[1 << 16];

static const struct {
	const char *name;
	ending *ends;
	uint64_t pointer;
} ways[] = {
	{"data", t_reads, 0},
	{"abort", t_aborts, 0},
	{"trap", t_traps, 0},
	{"null", t_calls, 0},
	{"nullmain", 0, 0},
	{"nulldeep", t_jumps_on, 0},
	{"nulljump", t_jumps, 0},
	{"bad", t_calls, 0x123456789000},
	{"odd", t_calls, 0x123456789003},
	{"badjump", t_jumps, 0x123456789000},
	{"datacall", t_calls, (uint64_t)&ready},
	{"stackcall", t_calls, 1},
	{"tail", t_tail, 0},
	{"alloca", t_alloca, 0},
	{"large", t_large, 0},
	{"saves", t_saves, 0},
	{"overflow", t_overflow, 0},
	{"deep", t_deep, 0},
	{"sort", t_sorts, 0},
	{"handler", t_raises, 0},
	{"altstack", t_raises, 0},
	{"fault", t_reads, 0},
	{"faultcall", t_calls, 0},
	{"threads", t_threads, 0},
};

NOINLINE int t_main(int argc, const char *way) {
	ENTER;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(way, ways[i].name)) {
			ends = ways[i].ends;
			pointer = (function *)ways[i].pointer;
		}
	if (!strcmp(way, "stackcall"))
		pointer = (function *)(void *)&way;
	if (!strcmp(way, "altstack")) {
		stack_t other;
		memset(&other, 0, sizeof other);
		other.ss_sp = stack;
		other.ss_size = sizeof stack;
		sigaltstack(&other, NULL);
		handle(SIGUSR1, SA_ONSTACK);
	}
	if (!strcmp(way, "handler"))
		handle(SIGUSR1, 0);
	if (!strncmp(way, "fault", 5))
		handle(SIGSEGV, 0);
	int n = ends ? t_walk(argc) : pointer(1);
	LEAVE;
	return n + 1;
}

int main(int argc, char **argv) {
	begin(0, (uint64_t)getpid());
	return t_main(argc, argc > 1 ? argv[1] : "") + 1;
}
