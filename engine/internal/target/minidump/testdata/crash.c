#include <pthread.h>
#include <unistd.h>

static volatile int *p;

static void *wait_for_it(void *unused)
{
	pause();
	return unused;
}

static int f(int n)
{
	*p = n;
	return n + 1;
}

int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, wait_for_it, 0);
	usleep(1000);
	return f(3) + 1;
}
