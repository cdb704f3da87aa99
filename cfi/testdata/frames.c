/* Functions whose call frame information differs in kind. The tests compile
   this file themselves. */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int leaf(int a) { return a * 3; }

__attribute__((noinline)) int saves(int a, int b, int c, int d, int e, int f, int g) {
	int s = leaf(a);
	s += leaf(b);
	if (s > 100)
		return leaf(c) + s; /* a second epilogue: remember and restore state */
	s += leaf(d);
	s += leaf(e) * leaf(f);
	return s + leaf(g) + a + b + c + d + e + f + g;
}

__attribute__((noinline)) int dynamic(int n) {
	char *p = alloca(n); /* the CFA moves to rbp */
	memset(p, n, n);
	return leaf(p[n / 2]);
}

/* The stack is realigned: the CFA is r10+0, then an expression. */
__attribute__((noinline)) int aligned(int n) {
	_Alignas(64) volatile int a[64];
	int *b = alloca(n);
	for (int i = 0; i < 64; i++)
		a[i] = i * n;
	b[0] = leaf(a[n % 64]);
	return b[0] + leaf(a[1]);
}

__attribute__((noinline)) int stack_args(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
	return leaf(a + b + c + d + e + f + g) + h + i + j;
}

__attribute__((noinline)) int outer(int a) {
	return stack_args(a, a, a, a, a, a, a, a, a, a) + stack_args(1, 2, 3, 4, 5, 6, 7, 8, 9, a);
}

static void drop(int *p) { printf("drop %d\n", *p); }

__attribute__((noinline)) int cleanup(int a) {
	__attribute__((cleanup(drop))) int b = a;
	return leaf(b) + saves(a, 1, 2, 3, 4, 5, 6);
}

__attribute__((noinline)) int unused(int a) { return outer(a) + dynamic(a); }

/* Rules that the compiler never writes. */
__asm__(".text\n.globl odd\n.type odd, @function\nodd:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 6, -16\n"
	"	.cfi_undefined 0\n"
	"	.cfi_same_value 3\n"
	"	.cfi_register 12, 13\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register 6\n"
	"	.cfi_val_offset 7, 0\n"
	"	.cfi_escape 0x10, 14, 2, 0x76, 8\n"
	"	.cfi_escape 0x16, 15, 2, 0x76, 16\n"
	"	nop\n"
	"	.cfi_remember_state\n"
	"	.cfi_restore 12\n"
	"	.cfi_restore 14\n"
	"	.cfi_escape 0x0f, 3, 0x77, 16, 0x06\n"
	"	nop\n"
	"	.cfi_restore_state\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa 7, 8\n"
	"	ret\n"
	"	.cfi_endproc\n.size odd, .-odd\n");
void odd(void);

int main(int argc, char **argv) {
	(void)argv;
	odd();
	return (saves(argc, 2, 3, 4, 5, 6, 7) + dynamic(argc * 16) + aligned(argc * 16) + outer(argc) + cleanup(argc)) & 1;
}
