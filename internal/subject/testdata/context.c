/* Aborts in the first function of a context. */
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t from, made;
static char stack[65536];

static void first(int n)
{
	(void)n;
	abort();
}

int main(void)
{
	getcontext(&made);
	made.uc_stack.ss_sp = stack;
	made.uc_stack.ss_size = sizeof stack;
	made.uc_link = &from;
	makecontext(&made, (void (*)(void))first, 1, 3);
	return swapcontext(&from, &made);
}
