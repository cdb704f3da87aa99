// A runtime that makes code and says so: main calls outer, outer calls inner, both
// made at run time, and inner calls spin. `jit dump DIR` writes DIR/jit-PID.dump
// (tools/perf/Documentation/jitdump-specification.txt), `jit map` writes
// /tmp/perf-PID.map. Of the dump's code inner has no frame pointer. With `jit over DIR`
// the record of inner says that it is larger than it is, and outer is made where that ends.
// With `jit clock DIR` the times of the dump are by a counter of the processor.
//
//	cc -O1 -g -o jit jit.c
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

__attribute__((noinline)) void spin(void) {
	volatile uint64_t n = 0; // of its own time, for the machine may be busy
	for (uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + 300000000; now(CLOCK_PROCESS_CPUTIME_ID) < end;)
		for (int i = 0; i < 100000; i++)
			n += i;
}

static const uint8_t framed[] = { // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
	0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const uint8_t bare[] = { // sub $0x28,%rsp; call *%rdi; add $0x28,%rsp; ret
	0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3};

// outer gets inner in rdi, and spin in rsi, which becomes inner's rdi.
static const uint8_t outer[] = { // push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; pop %rbp; ret
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};

static int ticks; // in a nanosecond

static void load(int fd, uint64_t index, const char *name, const void *code, size_t size, void *at) {
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, code_size, index;
	} r = {0, sizeof r + strlen(name) + 1 + size, ticks * now(CLOCK_MONOTONIC), getpid(), getpid(), (uintptr_t)at, (uintptr_t)at, size, index};
	write(fd, &r, sizeof r);
	write(fd, name, strlen(name) + 1);
	write(fd, code, size);
}

int main(int argc, char **argv) {
	if (argc < 2)
		return 2;
	int dump = strcmp(argv[1], "map"), isOver = !strcmp(argv[1], "over");
	ticks = strcmp(argv[1], "clock") ? 1 : 3;
	uint8_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *inner = dump ? bare : framed;
	size_t size = dump ? sizeof bare : sizeof framed;
	uint8_t *first = page + (isOver ? 256 : 64), *second = page + (isOver ? 64 : 256);
	memcpy(first, outer, sizeof outer);
	memcpy(second, inner, size);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	char path[4096];
	if (dump) {
		snprintf(path, sizeof path, "%s/jit-%d.dump", argv[2], getpid());
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		struct {
			uint32_t magic, version, size, machine, pad, pid;
			uint64_t time, flags;
		} h = {0x4A695444, 1, sizeof h, 62, 0, getpid(), now(CLOCK_MONOTONIC), ticks > 1};
		write(fd, &h, sizeof h);
		mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		load(fd, 2, "inner(made)", second, isOver ? 256 : size, second);
		load(fd, 1, "outer(made)", outer, sizeof outer, first);
		close(fd);
	} else {
		snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
		FILE *f = fopen(path, "w");
		fprintf(f, "%lx %zx outer(made)\n%lx %zx inner(made)\n", (long)first, sizeof outer, (long)second, size);
		fclose(f);
	}
	((void (*)(void *, void (*)(void)))first)(second, spin);
	return 0;
}
