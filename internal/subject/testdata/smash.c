/* Writes over the return address of a function: 0, or with an argument another value that is no address. With
 * -fno-omit-frame-pointer the frame records stay. Built with -O1 -g. */
#include <stdlib.h>

__attribute__((noinline, noipa)) void victim(int other)
{
	void **record = __builtin_frame_address(0);
	record[1] = other ? (void *)0x4141414141414141L : 0;
	abort();
}

__attribute__((noinline)) int mid(int other)
{
	victim(other);
	return other + 1;
}

__attribute__((noinline)) int outer(int other) { return mid(other) + 1; }

int main(int argc, char **argv)
{
	(void)argv;
	return outer(argc > 1) + 1;
}
