// Code that a tracing compiler makes: a stub makes a frame and jumps into a trace, which
// is all that a dump or a map tells of. `fragment dump DIR` and `fragment map` as jit.c.
// With `fragment back DIR` the trace is returned to the start of another entry of the dump,
// which no call precedes, as Erlang's frames are. With `fragment heap DIR` it is so on a stack in
// other memory, as Erlang's processes have, above which there are old return addresses.
//
//	cc -O1 -g -o fragment fragment.c
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static const uint8_t stub[] = { // push %rbx; sub $0x30,%rsp; movq $1,(%rsp); jmp trace
	0x53, 0x48, 0x83, 0xec, 0x30, 0x48, 0xc7, 0x04, 0x24, 1, 0, 0, 0, 0xe9, 0x2e, 0, 0, 0};
static const uint8_t pushing[] = { // push %rsi; jmp trace: what is at rsi is returned to
	0x56, 0xeb, 0x3d};
static const uint8_t trace[] = { // xor %eax,%eax; 1: inc %rax; cmp %rdi,%rax; jl 1b; jmp leave
	0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xf8, 0x7c, 0xf8, 0xe9, 0x31, 0, 0, 0};
static const uint8_t leave[] = {0x48, 0x83, 0xc4, 0x30, 0x5b, 0xc3}; // add $0x30,%rsp; pop %rbx; ret
static const uint8_t switching[] = { // push %rbx; mov %rsp,%rbx; mov %rsi,%rsp; jmp trace
	0x53, 0x48, 0x89, 0xe3, 0x48, 0x89, 0xf4, 0xe9, 0x34, 0, 0, 0};
static const uint8_t leaveHeap[] = {0x48, 0x89, 0xdc, 0x5b, 0xc3}; // mov %rbx,%rsp; pop %rbx; ret
static const uint8_t old[] = { // nops; call 1f; 1: ret
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0, 0xc3};
static const uint8_t before[] = {0x90, 0x90, 0x90, 0x90};
static const uint8_t resume[] = {0x90, 0xc3};

__attribute__((noinline)) long enter(uint8_t *code, uint8_t *back) { return ((long (*)(long, void *))code)(50000000, back) + 1; }

static void load(int fd, uint64_t index, const char *name, const uint8_t *code, uint64_t size) {
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, code_size, index;
	} r = {0, sizeof r + strlen(name) + 1 + size, now(), getpid(), getpid(), (uintptr_t)code, (uintptr_t)code, size, index};
	write(fd, &r, sizeof r);
	write(fd, name, strlen(name) + 1);
	write(fd, code, size);
}

int main(int argc, char **argv) {
	if (argc < 2)
		return 2;
	int isBack = !strcmp(argv[1], "back"), isHeap = !strcmp(argv[1], "heap");
	uint8_t *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, isHeap ? switching : isBack ? pushing : stub, isHeap ? sizeof switching : isBack ? sizeof pushing : sizeof stub);
	memcpy(page + 0x40, trace, sizeof trace);
	memcpy(page + 0x80, isHeap ? leaveHeap : isBack ? leave + 5 : leave, isHeap ? sizeof leaveHeap : isBack ? 1 : sizeof leave);
	memcpy(page + 0x100, old, sizeof old);
	memcpy(page + 0xc0, before, sizeof before);
	memcpy(page + 0xc4, resume, sizeof resume);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	char path[4096];
	if (!strcmp(argv[1], "map")) {
		snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
		FILE *f = fopen(path, "w");
		fprintf(f, "%lx %zx trace(made)\n", (long)(page + 0x40), sizeof trace);
		fclose(f);
	} else {
		snprintf(path, sizeof path, "%s/jit-%d.dump", argv[2], getpid());
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		struct {
			uint32_t magic, version, size, machine, pad, pid;
			uint64_t time, flags;
		} h = {0x4A695444, 1, sizeof h, 62, 0, getpid(), now(), 0};
		write(fd, &h, sizeof h);
		mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		load(fd, 1, "trace(made)", page + 0x40, sizeof trace);
		load(fd, 2, "before(made)", page + 0xc0, sizeof before);
		load(fd, 3, "resume(made)", page + 0xc4, sizeof resume);
		load(fd, 4, "old(made)", page + 0x100, sizeof old);
		close(fd);
	}
	static uint8_t *heap[1024];
	for (int i = 0; i < 1024; i++)
		heap[i] = page + (i == 512 ? 0xc4 : 0x115);
	for (int i = 0; i < 6; i++)
		enter(page, isHeap ? (uint8_t *)(heap + 512) : page + 0xc4);
	return 0;
}
