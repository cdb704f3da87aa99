// Code without call frame information, as hand-written runtimes and some
// embedded builds have it: frames with and without a frame pointer, callee
// saves, variable frames, calls through pointers, early returns.
//   nocfi wait    prints a line and waits
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int sink, stop;
typedef int (*step)(int, const char *);

__attribute__((noinline)) static int last(int n, const char *mode)
{
	sink = n;
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!strcmp(mode, "crash"))
		*(volatile int *)0 = n;
	while (!stop)
		pause();
	return n + 1;
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) static int with_frame_pointer(int n, const char *mode)
{
	char *p = alloca(n * 16 + 32);
	memset(p, n, n * 16);
	int r = last(n, mode);
	sink = p[n];
	return r;
}

__attribute__((noinline)) static int many_saves(int n, const char *mode)
{
	int a = n * 3, b = n ^ 7, c = n + 11, d = n - 5, e = n * n;
	if (n < 0)
		return 0;
	int r = with_frame_pointer(n, mode);
	sink = a + b;
	sink = c + d;
	sink = e + r;
	return a ^ b ^ c ^ d ^ e;
}

__attribute__((noinline)) static int big_frame(int n, const char *mode)
{
	volatile char block[5000];
	block[n] = 1;
	int r = n > 3 ? many_saves(n, mode) : 0;
	return r + block[n];
}

__attribute__((noinline)) static int recursive(int n, const char *mode, step f)
{
	if (n == 0)
		return f(9, mode);
	int r = recursive(n - 1, mode, f) + 1;
	sink = r;
	return r;
}

int main(int argc, char **argv)
{
	step volatile f = big_frame;
	return recursive(7, argc > 1 ? argv[1] : "wait", f);
}
