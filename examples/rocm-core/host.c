// A process that has a GPU inspect, grade and total parts. Its queues are only memory: there
// is no GPU that takes anything from them. The two threads wait as those of ROCm's
// programs do, in the function of that name, each for a signal of its own.

typedef struct {
	unsigned long handle;
} hsa_signal_t;

struct signal {
	long kind;
	volatile long value;
	long rest[6];
} __attribute__((aligned(64)));

struct signal graded = {1, 1}, inspected = {1, 1}, totalled = {1, 1};

static long system_call(long number, long a, long b)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return result;
}

__attribute__((noinline)) long hsa_signal_wait_scacquire(hsa_signal_t signal, int condition, long compare)
{
	const long pause = 34;
	struct signal *of = (struct signal *)signal.handle;
	while (condition == 0 && of->value != compare)
		system_call(pause, 0, 0);
	return of->value;
}

__attribute__((noinline)) static int finish(struct signal *last)
{
	hsa_signal_t signal = {(unsigned long)last};
	int failed = hsa_signal_wait_scacquire(signal, 0, 0) != 0;
	return failed;
}

__attribute__((noinline)) static int inspect_parts(int batches)
{
	int checked = 0;
	while (checked < batches && !finish(&inspected))
		checked++;
	return checked;
}

__attribute__((noinline)) static int total_trays(void)
{
	return finish(&totalled);
}

__attribute__((used)) static void totals_thread(void)
{
	total_trays();
}

long totals_stack[512];
long start_thread(long *stack_end);

int main(void)
{
	start_thread(totals_stack + 512);
	return inspect_parts(3) != 3;
}

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xor %ebp, %ebp\n"
	"	call main\n"
	"	mov %eax, %edi\n"
	"	mov $231, %eax\n" // exit_group
	"	syscall\n"
	"	.cfi_endproc\n"
	".size _start, .-_start\n"
	".globl start_thread\n"
	".type start_thread, @function\n"
	"start_thread:\n"
	"	.cfi_startproc\n"
	"	mov %rdi, %rsi\n"
	"	mov $0x50f00, %edi\n" // CLONE_VM, _FS, _FILES, _SIGHAND, _SYSVSEM and _THREAD
	"	mov $56, %eax\n"      // clone
	"	syscall\n"
	"	test %eax, %eax\n"
	"	jz thread_entry\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size start_thread, .-start_thread\n"
	".type thread_entry, @function\n"
	"thread_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xor %ebp, %ebp\n"
	"	call totals_thread\n"
	"	xor %edi, %edi\n"
	"	mov $60, %eax\n" // exit
	"	syscall\n"
	"	.cfi_endproc\n"
	".size thread_entry, .-thread_entry\n"
	// The GPU's code as clang embeds it.
	".section .hip_fatbin, \"a\", @progbits\n"
	".p2align 12\n"
	".incbin \"inspect.hipfb\"\n"
	".p2align 12\n"
	".incbin \"total.hipfb\"\n"
	".text\n");
