// SPDX-License-Identifier: Apache-2.0
// Computes for some seconds, with recursion. "fork" does so in a child, "unlink" after it has
// removed its own file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void spin(int n)
{
	for (int i = 0; i < n; i++)
		sink += i * 3;
}

__attribute__((noinline)) static void descend(int depth)
{
	if (depth > 0)
		descend(depth - 1);
	else
		spin(100000);
	sink++;
}

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	spin(50);
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void work(void)
{
	static int numbers[5000];
	for (time_t end = time(0) + 2; time(0) < end;) {
		for (int i = 0; i < 5000; i++)
			numbers[i] = rand();
		qsort(numbers, 5000, sizeof *numbers, compare);
		descend(10);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "unlink"))
		unlink(argv[0]);
	if (!strcmp(how, "fork") && fork() != 0)
		return wait(0) < 0;
	work();
	return 0;
}
