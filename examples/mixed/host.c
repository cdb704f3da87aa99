// A process that has an accelerator grade and inspect parts, and waits for both.
// The queue is only memory: there is no accelerator that takes anything from it.

struct dispatch {
	const char *kernel;
	unsigned groups, group_size;
	volatile long pending;
};

static struct dispatch queue[2];

static long pause(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(34) : "rcx", "r11", "memory");
	return result;
}

__attribute__((noinline)) static void launch(struct dispatch *d, const char *kernel, unsigned groups, unsigned group_size)
{
	d->kernel = kernel;
	d->groups = groups;
	d->group_size = group_size;
	d->pending = 1;
}

static inline void wait_for_all(void)
{
	while (queue[0].pending | queue[1].pending)
		pause();
}

__attribute__((noinline)) static int check_parts(int batches)
{
	int checked = 0;
	while (checked < batches) {
		launch(&queue[0], "grade", 2, 64);
		launch(&queue[1], "inspect", 2, 64);
		wait_for_all();
		checked++;
	}
	return checked;
}

int main(void)
{
	return check_parts(3) != 3;
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
