/* Calls a function of a library, which calls back, again and again. Built with -O1 -g. The library is reentered.c. */
#include <dlfcn.h>

typedef int (*callback)(int);

static int (*entry)(callback, int);

static int again(int n) { return entry(again, n) + 1; }

int main(int argc, char **argv)
{
	(void)argc;
	entry = (int (*)(callback, int))dlsym(dlopen(argv[1], RTLD_NOW), "entry");
	return entry(again, 0);
}
