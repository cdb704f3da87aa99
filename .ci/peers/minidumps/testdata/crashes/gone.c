// A library calls back into one that was unloaded.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
	char path[4096];
	(void)argc;
	snprintf(path, sizeof path, "%.*s/libgone.so", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	void *h = dlopen(path, RTLD_NOW);
	int (*f)(int) = (int (*)(int))dlsym(h, "answer");
	int n = f(1);
	dlclose(h);
	return f(n);
}
