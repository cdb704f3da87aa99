/* A process that is stopped while it does what its first argument says:
 *
 *   threads N    N threads wait, three functions deep
 *   busy N       N threads execute, and N + 2 wait
 *   locked N     N threads wait for a lock that the first one holds
 *   deep N       the only thread waits N calls deep
 *   churn        threads start and end all the time
 *   exec N       a thread executes this program again and again, at most N times
 *   leader       the first thread ends, another one waits
 *   spin N       it needs its processor for N milliseconds
 *   vfork        a thread is in an uninterruptible wait, for the child that it made
 *   handler      it waits in a signal handler on a stack of its own
 *   coroutine    the only thread waits on a stack that the program made
 *   call FILE    it waits in wait_in_library of a shared object, which is deleted meanwhile
 *
 * gcc -g -O1 -fno-optimize-sibling-calls -pthread -o victim victim.c -ldl
 * gcc -g -O1 -fno-optimize-sibling-calls -DLIBRARY -shared -fPIC -o libvictim.so victim.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

#ifdef LIBRARY
void NOINLINE wait_in_library(void) {
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
#else

static volatile int sink;
static char *self;
static long left;

static void ready(void) {
	puts("ready");
	fflush(stdout);
}

static void NOINLINE wait_inner(void) {
	for (;;)
		pause();
}
static void NOINLINE wait_middle(void) { wait_inner(); sink++; }
static void *waiter(void *arg) { wait_middle(); sink++; return arg; }

static void NOINLINE spin_inner(void) {
	for (;;)
		sink++;
}
static void *spinner(void *arg) { spin_inner(); sink++; return arg; }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *locker(void *arg) {
	pthread_mutex_lock(&mutex);
	sink++;
	return arg;
}

static void *parent(void *arg) {
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return arg;
}

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *ender(void *arg) { sink++; return arg; }

static void *executer(void *arg) {
	char count[32];
	snprintf(count, sizeof count, "%ld", left - 1);
	execl(self, self, "exec", count, (char *)0);
	return arg;
}

static int NOINLINE deep(long n) {
	volatile char room[64];
	room[0] = (char)n;
	if (n == 0) {
		ready();
		wait_inner();
	} else
		sink += deep(n - 1);
	return room[0];
}

static void on_signal(int number) { sink = number; ready(); wait_middle(); sink++; }

static void coroutine(void) { ready(); wait_middle(); sink++; }

static void NOINLINE raise_it(void) { raise(SIGUSR1); sink++; }

int main(int argc, char **argv) {
	pthread_t t;
	const char *mode = argc > 1 ? argv[1] : "";
	self = argv[0];
	left = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(mode, "threads")) {
		for (long i = 0; i < left; i++)
			pthread_create(&t, NULL, waiter, NULL);
		ready();
		wait_middle();
	} else if (!strcmp(mode, "busy")) {
		for (long i = 0; i < left; i++)
			pthread_create(&t, NULL, spinner, NULL);
		for (long i = 0; i < left + 1; i++)
			pthread_create(&t, NULL, waiter, NULL);
		ready();
		wait_middle();
	} else if (!strcmp(mode, "locked")) {
		pthread_mutex_lock(&mutex);
		for (long i = 0; i < left; i++)
			pthread_create(&t, NULL, locker, NULL);
		ready();
		wait_middle();
	} else if (!strcmp(mode, "deep")) {
		sink += deep(left);
	} else if (!strcmp(mode, "churn")) {
		ready();
		for (;;) {
			pthread_t list[4];
			for (int i = 0; i < 4; i++)
				pthread_create(&list[i], NULL, ender, NULL);
			for (int i = 0; i < 4; i++)
				pthread_join(list[i], NULL);
		}
	} else if (!strcmp(mode, "exec")) {
		if (left > 0) {
			for (int i = 0; i < 3; i++)
				pthread_create(&t, NULL, waiter, NULL);
			pthread_create(&t, NULL, executer, NULL);
		}
		wait_middle();
	} else if (!strcmp(mode, "leader")) {
		pthread_create(&t, NULL, waiter, NULL);
		ready();
		pthread_exit(NULL);
	} else if (!strcmp(mode, "vfork")) {
		pthread_create(&t, NULL, parent, NULL);
		ready();
		wait_middle();
	} else if (!strcmp(mode, "spin")) {
		getchar();
		ready();
		for (long end = now() + left; now() < end;)
			;
	} else if (!strcmp(mode, "handler")) {
		static char room[65536];
		stack_t ss = {.ss_sp = room, .ss_size = sizeof room};
		struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
		sigaltstack(&ss, NULL);
		sigaction(SIGUSR1, &sa, NULL);
		raise_it();
	} else if (!strcmp(mode, "coroutine")) {
		static char room[65536];
		static ucontext_t here, there;
		getcontext(&there);
		there.uc_stack.ss_sp = room;
		there.uc_stack.ss_size = sizeof room;
		there.uc_link = &here;
		makecontext(&there, coroutine, 0);
		swapcontext(&here, &there);
	} else if (!strcmp(mode, "call")) {
		void *library = dlopen(argv[2], RTLD_NOW);
		void (*f)(void) = library ? (void (*)(void))dlsym(library, "wait_in_library") : NULL;
		if (!f)
			return 1;
		f();
		sink++;
	}
	return 0;
}
#endif
