/* Runs without a C library, so that a compiler for AArch64 and no more builds
   it. It stops at an instruction that traps, five functions deep. */
__attribute__((noinline)) void leaf(volatile char *p)
{
	p[0] = 1;
	__asm__ volatile("movi v3.16b, #0x5a\n\t"
			 "ldr x19, =0x1234567890abcdef\n\t"
			 "brk #1" ::: "v3", "x19", "memory");
}

__attribute__((noinline)) void middle(int n)
{
	volatile char bytes[64];
	bytes[1] = (char)n;
	if (n)
		middle(n - 1);
	else
		leaf(bytes);
	bytes[2] = 1;
}

void _start(void)
{
	/* The first frame has no frame record before it. */
	__asm__ volatile("mov x29, xzr" ::: "memory");
	middle(3);
	for (;;)
		;
}
