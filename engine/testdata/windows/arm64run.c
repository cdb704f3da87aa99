/* Runs a program for Windows on arm64 that imports nothing, under Linux: arm64run PROGRAM OFFSET...
 * It calls the entry, which calls back, and writes to standard output the registers and the stack
 * there; and then the same for each of the offsets in the image, where an instruction is replaced by
 * a trap, if it comes there: x0 to x30, sp, pc, v0 to v31, and the stack's address, size and bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static unsigned char *top;

struct record {
	unsigned long x[31], sp, pc;
	__uint128_t v[32];
	unsigned long stack, size;
};

static void put(struct record *r) {
	r->stack = r->sp;
	r->size = (unsigned long)top - r->sp;
	if (write(1, r, sizeof *r) != sizeof *r || write(1, (void *)r->stack, r->size) != (long)r->size) abort();
}

void record_here(unsigned long *general) {
	static struct record r;
	memcpy(r.x, general, sizeof r.x);
	r.sp = (unsigned long)general + 272 + 512;
	r.pc = r.x[30];
	memcpy(r.v, (char *)general + 272, 512);
	put(&r);
}

/* Stores all registers, and calls record_here. */
void back(void);
__asm__(".globl back\nback:\n"
	"sub sp, sp, #784\n"
#define PAIR(a, b) "stp x" #a ", x" #b ", [sp, #" #a " * 8]\n"
	PAIR(0, 1) PAIR(2, 3) PAIR(4, 5) PAIR(6, 7) PAIR(8, 9) PAIR(10, 11) PAIR(12, 13) PAIR(14, 15) PAIR(16, 17) PAIR(18, 19)
	PAIR(20, 21) PAIR(22, 23) PAIR(24, 25) PAIR(26, 27) PAIR(28, 29) "str x30, [sp, #240]\n"
#define REAL(a, b) "stp q" #a ", q" #b ", [sp, #272 + " #a " * 16]\n"
	REAL(0, 1) REAL(2, 3) REAL(4, 5) REAL(6, 7) REAL(8, 9) REAL(10, 11) REAL(12, 13) REAL(14, 15)
	REAL(16, 17) REAL(18, 19) REAL(20, 21) REAL(22, 23) REAL(24, 25) REAL(26, 27) REAL(28, 29) REAL(30, 31)
	"mov x0, sp\nbl record_here\n"
	"ldr x30, [sp, #240]\nadd sp, sp, #784\nret\n");

static void trapped(int signal, siginfo_t *info, void *context) {
	static struct record r;
	mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	struct fpsimd_context *f = (struct fpsimd_context *)m->__reserved;
	(void)signal, (void)info;
	memcpy(r.x, m->regs, sizeof r.x);
	r.sp = m->sp;
	r.pc = m->pc;
	memcpy(r.v, f->vregs, sizeof r.v);
	put(&r);
	_exit(0);
}

int main(int n, char **v) {
	unsigned char *h, *base, b[1 << 20], mark[256];
	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	long (*entry)(void (*)(void));
	int f = open(v[1], O_RDONLY);
	long size = read(f, b, sizeof b);
	if (size < 1024) return 2;
	top = mark;
	h = b + *(unsigned *)(b + 0x3c);
	base = mmap(*(void **)(h + 24 + 24), *(unsigned *)(h + 24 + 56), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(base, b, 1024);
	for (int i = 0; i < *(unsigned short *)(h + 6); i++) {
		unsigned *s = (unsigned *)(h + 24 + *(unsigned short *)(h + 20) + 40 * i);
		memcpy(base + s[3], b + s[5], s[4] < s[2] ? s[4] : s[2]);
	}
	__builtin___clear_cache(base, base + *(unsigned *)(h + 24 + 56));
	entry = (void *)(base + *(unsigned *)(h + 24 + 16));
	sigaltstack(&other, 0);
	sigaction(SIGTRAP, &action, 0);
	entry(back);
	if (write(1, base + strtoul(v[2], 0, 0), 16 * 8) != 16 * 8) return 2;
	for (int i = 3; i < n; i++) {
		if (fork() == 0) {
			unsigned char *at = base + strtoul(v[i], 0, 0);
			*(unsigned *)at = 0xd43e0000;
			__builtin___clear_cache(at, at + 4);
			entry(0 ? back : (void (*)(void))abs);
			_exit(0);
		}
		wait(0);
	}
	return 0;
}
