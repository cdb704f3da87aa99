#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
	char path[4096];
	(void)argc;
	snprintf(path, sizeof path, "%.*s/libconstructor.so", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	void *h = dlopen(path, RTLD_NOW);
	return h == 0;
}
