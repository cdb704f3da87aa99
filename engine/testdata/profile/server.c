// A server whose master makes code, writes its map, and forks a worker that executes the code.
// It says the number of the worker, which is 2 in a PID namespace of its own.
//
//	cc -O1 -g -fno-omit-frame-pointer -o server server.c
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t loop[] = { // 1: inc %rax; jmp 1b
	0x48, 0xff, 0xc0, 0xeb, 0xfb};

int main(void) {
	uint8_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, loop, sizeof loop);
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "w");
	fprintf(f, "%lx %zx loop(made)\n", (long)page, sizeof loop);
	fclose(f);
	pid_t worker = fork();
	if (worker == 0) {
		prctl(PR_SET_PDEATHSIG, 9);
		((void (*)(void))page)();
	}
	printf("%d\n", worker);
	fflush(stdout);
	wait(0);
	return 0;
}
