/* Runs code that it writes into memory, which links its frames by frame pointers and enters them by jumps, as
 * interpreters do that are made at run time. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* run(int depth, void (*last)(void)) */
static const unsigned char code[] = {
	0x55,                                     /* push %rbp */
	0x48, 0x89, 0xe5,                         /* mov %rsp,%rbp */
	0x48, 0x83, 0xec, 0x20,                   /* sub $32,%rsp */
	0xff, 0xcf,                               /* dec %edi */
	0x74, 0x0a,                               /* je last */
	0x48, 0x8d, 0x05, 0x0d, 0x00, 0x00, 0x00, /* lea after(%rip),%rax */
	0x50,                                     /* push %rax */
	0xeb, 0xea,                               /* jmp run */
	/* last: */
	0x48, 0x83, 0xe4, 0xf0, /* and $-16,%rsp */
	0xff, 0xd6,             /* call *%rsi */
	0xff, 0xe2,             /* jmp *%rdx */
	0x90, 0x90,
	/* after: */
	0xff, 0xe2, /* jmp *%rdx */
};

static void last(void) { abort(); }

__attribute__((noinline)) int enter(void (*run)(int, void (*)(void)))
{
	run(50, last);
	return 1;
}

int main(void)
{
	char *m = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(m, code, sizeof code);
	return enter((void (*)(int, void (*)(void)))m) + 1;
}
