/* Calls a function of a library, which calls back, after the library's file was removed. Built with -O2 -g.
 * The library is plug.c. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*callback)(void);

__attribute__((noinline)) static int broken(void) { abort(); }

__attribute__((noinline)) static int run(char *path, int (*plug)(callback))
{
	unlink(path);
	return plug(broken) + 1;
}

int main(int argc, char **argv)
{
	(void)argc;
	void *library = dlopen(argv[1], RTLD_NOW);
	return run(argv[1], (int (*)(callback))dlsym(library, "plug")) + 1;
}
