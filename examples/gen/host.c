// A process that has an accelerator add up trees, and goes on with something
// else. The queue is only memory: there is no accelerator that takes anything
// from it.

struct dispatch {
	const char *kernel;
	unsigned items;
};

static struct dispatch queue[4];

// await waits until a byte comes in.
__attribute__((noinline)) static void await(void)
{
	long result;
	char byte;
	__asm__ volatile("syscall" : "=a"(result) : "a"(0), "D"(0), "S"(&byte), "d"(1) : "rcx", "r11", "memory");
}

__attribute__((noinline)) static void launch(const char *kernel, unsigned items)
{
	struct dispatch *d = &queue[2];
	d->kernel = kernel;
	d->items = items;
	await();
}

__attribute__((noinline)) static void sum_trees(unsigned trees)
{
	launch("sums", trees);
	queue[3].items = trees;
}

__attribute__((noinline)) static void plant(void)
{
	await();
	queue[0].items++;
}

int main(void)
{
	sum_trees(24);
	plant();
	return 0;
}

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xor %ebp, %ebp\n"
	"	call main\n"
	"	mov %eax, %edi\n"
	"	mov $60, %eax\n"
	"	syscall\n"
	"	.cfi_endproc\n"
	".size _start, .-_start\n");
