/* Crashes in the unlikely part of a function, with old return addresses lower on the stack. Built with -O2 and
 * without call frame information, with symbols and without. */
#include <stdlib.h>

volatile int sink;
volatile int *nowhere;

__attribute__((noreturn, noinline, cold)) void fatal(const char *why)
{
	sink = *nowhere + why[0];
	abort();
}

__attribute__((noinline)) void deep(int n)
{
	if (n)
		deep(n - 1);
	sink++;
}

__attribute__((noinline)) int parse(const char *s, int n)
{
	volatile long room[40];
	for (int i = 0; i < n; i++)
		room[i] = s[i];
	if (s[0] == '!')
		fatal(s);
	return room[n - 1];
}

__attribute__((noinline)) int request(const char *s) { return parse(s, 3) + 1; }

int main(int argc, char **argv)
{
	deep(60);
	return request(argc > 1 ? argv[1] : "!abc") + 2;
}
