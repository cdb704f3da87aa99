/* Crashes beside a thread that waits: where do their stacks begin? Built with musl-gcc or with -static. */
#include <pthread.h>
#include <unistd.h>

static void *waiting(void *p)
{
	for (;;)
		pause();
	return p;
}

__attribute__((noinline)) int deep(int n)
{
	volatile int x = n;
	if (n > 0)
		return deep(n - 1) + 1;
	*(volatile int *)0 = x;
	return 1;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, waiting, 0);
	usleep(100000);
	return deep(2) + 1;
}
