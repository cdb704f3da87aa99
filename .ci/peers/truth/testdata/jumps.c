// SPDX-License-Identifier: Apache-2.0

// Jumps out of frames, handlers of signals on either stack, and stacks that are switched.

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define OWN __attribute__((noinline))

static jmp_buf back;
static sigjmp_buf out;
static volatile int sink;

static int compare(const void *a, const void *b) {
	return *(const int *)a - *(const int *)b;
}

OWN static int work(int n) {
	int list[24];
	char text[64];
	for (int i = 0; i < 24; i++)
		list[i] = i * n % 17;
	qsort(list, 24, sizeof list[0], compare);
	snprintf(text, sizeof text, "%d %s %g", list[3], "work", n / 3.0);
	return list[5] + (int)strlen(text);
}

OWN static int deep(int n) {
	if (n == 0)
		longjmp(back, 7);
	return deep(n - 1) + work(n);
}

OWN static int jumps(int n) {
	volatile int times = 0;
	if (setjmp(back) == 0)
		return deep(n);
	times++;
	return work(times);
}

static void handler(int signal, siginfo_t *info, void *context) {
	(void)info;
	(void)context;
	sink += work(signal);
}

static void nested(int signal) {
	sink += work(signal);
	raise(SIGUSR1);
	sink += work(signal);
}

static void leaves(int signal) {
	sink += work(signal);
	siglongjmp(out, 1);
}

OWN static int faults(void) {
	if (sigsetjmp(out, 1) == 0)
		return *(volatile int *)8;
	return work(3);
}

OWN static int bad(void) {
	if (sigsetjmp(out, 1) == 0) {
		int (*volatile f)(void) = NULL;
		return f();
	}
	return work(4);
}

static void on(int signal, void (*f)(int), int flags) {
	struct sigaction a = {.sa_handler = f, .sa_flags = flags};
	sigaction(signal, &a, NULL);
}

// Coroutines.

static ucontext_t first, contexts[3];
static int running;

OWN static void yield(int n) {
	work(n);
	int from = running;
	running = (running + 1) % 3;
	swapcontext(&contexts[from], &contexts[running]);
}

static void routine(int n) {
	for (int i = 0; i < 3; i++) {
		yield(n + i);
		work(i);
	}
}

OWN static void coroutines(void) {
	for (int i = 0; i < 3; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_size = 256 << 10;
		contexts[i].uc_stack.ss_sp = mmap(NULL, 512 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		contexts[i].uc_link = &first;
		makecontext(&contexts[i], (void (*)(void))routine, 1, i);
	}
	running = 0;
	swapcontext(&first, &contexts[0]);
}

OWN static void children(void) {
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(work(1) & 1);
	waitpid(pid, &status, 0);
	sink += system("true");
}

int main(void) {
	static char other[64 << 10];
	stack_t s = {.ss_sp = other, .ss_size = sizeof other};
	sigaltstack(&s, NULL);
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGUSR1, &a, NULL);
	on(SIGUSR2, nested, 0);
	on(SIGTERM, nested, SA_ONSTACK);
	on(SIGSEGV, leaves, SA_ONSTACK);
	on(SIGALRM, nested, SA_RESTART);
	sink += jumps(5);
	raise(SIGUSR1);
	raise(SIGUSR2);
	kill(getpid(), SIGTERM);
	sink += faults();
	sink += bad();
	coroutines();
	on(SIGSEGV, leaves, 0);
	sink += faults();
	struct itimerval every = {{0, 20000}, {0, 5000}};
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 40; i++)
		sink += work(i);
	every.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &every, NULL);
	children();
	printf("%d\n", sink);
	return 0;
}
