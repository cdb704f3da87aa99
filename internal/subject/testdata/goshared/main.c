/* Calls Begin of each library that its arguments name, and fails. */
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return 1;
		((void (*)(void))dlsym(library, "Begin"))();
	}
	abort();
}
