// A process that has an accelerator grade parts, and waits for it. The queue is
// only memory: there is no accelerator that takes anything from it.

struct dispatch {
	const char *kernel;
	unsigned groups, group_size;
	volatile long pending;
};

static struct dispatch queue[4];

static long pause(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(34) : "rcx", "r11", "memory");
	return result;
}

static inline void wait_for(struct dispatch *d)
{
	while (d->pending)
		pause();
}

__attribute__((noinline)) static void launch(const char *kernel, unsigned groups, unsigned group_size)
{
	struct dispatch *d = &queue[1];
	d->kernel = kernel;
	d->groups = groups;
	d->group_size = group_size;
	d->pending = 1;
	wait_for(d);
}

__attribute__((noinline)) static int grade_parts(int batches)
{
	int graded = 0;
	while (graded < batches) {
		launch("grade", 2, 128);
		graded++;
	}
	return graded;
}

int main(void)
{
	return grade_parts(3) != 3;
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
