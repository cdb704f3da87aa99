/* SPDX-License-Identifier: Apache-2.0
 *
 * What abi.c takes of a C library, for 64-bit POWER and s390x without one. */
typedef unsigned long size_t;
typedef struct { char bytes[128]; } siginfo_t;
struct sigaction {
	void (*sa_sigaction)(int, siginfo_t *, void *);
	unsigned long sa_flags;
	void *restorer;
	unsigned long mask;
};
enum { SIGSEGV = 11, SA_SIGINFO = 4, SA_NODEFER = 0x40000000 };
#define I 1i
#define creal(z) __real__(z)
#define crealf(z) __real__(z)

void *memcpy(void *to, const void *from, size_t n) {
	for (size_t i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

static int strcmp(const char *a, const char *b) {
	while (*a && *a == *b)
		a++, b++;
	return *a - *b;
}

static void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *)) {
	for (size_t i = 1; i < n; i++)
		if (compare((char *)base + (i - 1) * size, (char *)base + i * size) > 0)
			break;
}

static void sigaction(int number, struct sigaction *action, void *old) {
#ifdef __s390x__
	register long nr __asm__("1") = 174, a __asm__("2") = number, b __asm__("3") = (long)action, c __asm__("4") = 0, d __asm__("5") = 8;
	__asm__ volatile("svc 0" : "+r"(a) : "r"(nr), "r"(b), "r"(c), "r"(d) : "memory", "cc");
#else
	register long nr __asm__("0") = 173, a __asm__("3") = number, b __asm__("4") = (long)action, c __asm__("5") = 0, d __asm__("6") = 8;
	__asm__ volatile("sc" : "+r"(nr), "+r"(a), "+r"(b), "+r"(c), "+r"(d) : : "memory", "cc", "ctr", "r7", "r8", "r9", "r10", "r11", "r12");
#endif
}

static void abort(void) { __builtin_trap(); }

static int main(int argc, char **argv);

/* The caller of _start put the arguments onto the stack. */
__attribute__((used)) static void begin(long *stack) {
	volatile int done = main((int)stack[0], (char **)(stack + 1));
	abort();
}

#ifdef __s390x__
__asm__(".globl _start; .type _start,@function; _start: .cfi_startproc; .cfi_undefined 14; lgr %r2,%r15; aghi %r15,-160; brasl %r14,begin; j .; .cfi_endproc; .size _start,.-_start");
#elif defined __LITTLE_ENDIAN__
__asm__(".globl _start; .type _start,@function; _start: .cfi_startproc; .cfi_undefined 65; bcl 20,31,1f; 1: mflr 2; addis 2,2,.TOC.-1b@ha; addi 2,2,.TOC.-1b@l; mr 3,1; li 0,0; stdu 0,-32(1); bl begin; nop; b .; .cfi_endproc; .size _start,.-_start");
#else
__asm__(".section .opd,\"aw\"; .align 3; .globl _start; _start: .quad .L._start,.TOC.@tocbase,0; .previous; .type _start,@function;"
	".L._start: .cfi_startproc; .cfi_undefined 65; mr 3,1; li 0,0; stdu 0,-112(1); bl begin; nop; b .; .cfi_endproc; .size _start,.-.L._start");
#endif
