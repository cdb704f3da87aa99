/* Crashes in a comparison, under functions that have called others before. Built with -O2 -g. */
#include <stdio.h>
#include <stdlib.h>

static int n;

static int compare(const void *a, const void *b)
{
	if (++n > 5)
		*(volatile int *)0 = 1;
	int x[5] = {5, 4, 3, 2, 1};
	if (n < 4)
		qsort(x, 5, 4, compare);
	return *(int *)a - *(int *)b;
}

__attribute__((noinline)) int work(int *a, int k)
{
	char text[100];
	snprintf(text, sizeof text, "%d", k);
	if (k > 3)
		qsort(a, 5, 4, compare);
	else
		work(a, k + 1);
	return text[0];
}

int main(void)
{
	int a[5] = {5, 3, 1, 2, 4};
	return work(a, 0);
}
