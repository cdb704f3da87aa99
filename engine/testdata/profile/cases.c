// A program to record: cases MODE [LIBRARY].
// gcc -O1 -g cases.c -o cases -ldl
// gcc -O1 -g -shared -fPIC -DLIBRARY cases.c -o libcases.so
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned deep(int n, unsigned x) {
	unsigned v = x * 31 + n;
	for (int i = 0; i < 200; i++)
		v = v * 1664525u + 1013904223u;
	if (n > 0)
		v += deep(n - 1, v);
	sink = v;
	return v ^ x;
}

#ifdef LIBRARY
unsigned library(unsigned x) { return deep(20, x); }
#else

static double used(void) {
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void spin(double seconds) {
	for (double end = used() + seconds; used() < end;)
		for (int i = 0; i < 20; i++)
			deep(30, i);
}

// The clock that is read without the kernel.
static void vdso(double seconds) {
	struct timespec t;
	for (double end = used() + seconds; used() < end;)
		for (int i = 0; i < 2000; i++)
			sink += clock_gettime(CLOCK_MONOTONIC, &t);
}

static void handler(int signal) { sink += deep(200, signal); }

static void signals(double seconds) {
	struct sigaction action = {.sa_handler = handler};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &often, NULL);
	spin(seconds);
}

// A library that is loaded, called and unloaded; what is mapped then may be where
// it was.
static void loaded(double seconds, const char *path) {
	for (double end = used() + seconds; used() < end;) {
		void *library = dlopen(path, RTLD_NOW);
		if (!library)
			exit(3);
		unsigned (*f)(unsigned) = (unsigned (*)(unsigned))dlsym(library, "library");
		for (int i = 0; i < 100; i++)
			sink += f(i);
		dlclose(library);
		void *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, 1, 1 << 16);
		munmap(p, 1 << 16);
	}
}

static void children(char *self) {
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			spin(0.02);
			if (i % 2)
				execl(self, self, i % 3 ? "spin" : "vdso", (char *)NULL);
			_exit(0);
		}
	}
	spin(0.05);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv) {
	const char *mode = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "spin"))
		spin(0.03);
	else if (!strcmp(mode, "vdso"))
		vdso(0.1);
	else if (!strcmp(mode, "signals"))
		signals(0.15);
	else if (!strcmp(mode, "loaded") && argc > 2)
		loaded(0.15, argv[2]);
	else if (!strcmp(mode, "children"))
		children(argv[0]);
	else
		return 2;
}
#endif
