// A crash in a signal handler, which runs on a stack of its own.
#include <signal.h>
#include <stdlib.h>
static void handle(int s) { *(volatile int *)0 = s; }
__attribute__((noinline)) static void work(int n) { if (n) work(n - 1); else raise(SIGUSR1); asm volatile(""); }
int main(void) {
	stack_t s = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	sigaltstack(&s, 0);
	struct sigaction a = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &a, 0);
	work(3);
	return 0;
}
