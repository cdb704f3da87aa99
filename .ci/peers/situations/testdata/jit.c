// SPDX-License-Identifier: Apache-2.0
// A runtime: it makes a function that loops, says so in /tmp/perf-PID.map, and calls it; with
// "fork" a child calls it.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	// push rbp; mov rbp, rsp; mov ecx, N; dec ecx; jnz -4; pop rbp; ret
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0, 0, 0x40, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
	unsigned char *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, code, sizeof code);
	char name[64];
	snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(name, "w");
	fprintf(map, "%lx %zx jitted_loop\n", (unsigned long)made, sizeof code);
	fclose(map);
	if (argc > 1 && !strcmp(argv[1], "fork") && fork() != 0)
		return wait(0) < 0;
	for (int i = 0; i < (argc > 1 ? 3 : 30); i++)
		((void (*)(void))made)();
	return 0;
}
