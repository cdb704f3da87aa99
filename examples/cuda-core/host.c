// A process that has a GPU inspect parts. There is no GPU: the functions with names of the CUDA
// runtime only return, or wait, as the runtime's do. The first thread has gone on to something else.
// The second one launches a kernel and waits for it. The third stands for the driver, which ends the
// process by SIGABRT once it has written the core of the GPU.

struct dim3 {
	unsigned x, y, z;
};

typedef struct stream *cudaStream_t;

enum { number_pause = 34, number_getpid = 39, number_gettid = 186, number_tgkill = 234, number_nanosleep = 35, signal_abort = 6 };

static long system_call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

volatile int launched, pending = 1;

__attribute__((noinline)) int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **arguments, unsigned long shared, cudaStream_t stream)
{
	launched++;
	return 0;
}

__attribute__((noinline)) int cudaDeviceSynchronize(void)
{
	while (pending)
		system_call(number_pause, 0, 0, 0);
	return 0;
}

// nvcc makes a function of the kernel's name that launches it.
__attribute__((noinline)) static int inspect(const void *parts, int *result, int count)
{
	void *arguments[] = {&parts, &result, &count};
	struct dim3 grid = {2, 1, 1}, block = {64, 1, 1};
	return cudaLaunchKernel((const void *)inspect, grid, block, arguments, 0, 0);
}

void *const device_parts = (void *)0x7f1200000000;
int *const device_results = (int *)0x7f1200100000;

__attribute__((noinline)) static int inspect_parts(int count)
{
	int failed = inspect(device_parts, device_results, count);
	if (!failed)
		failed = cudaDeviceSynchronize();
	return failed;
}

__attribute__((used)) static void inspecting_thread(void)
{
	int checked = 0;
	while (!inspect_parts(128))
		checked++;
}

__attribute__((used)) static void driver_thread(void)
{
	long half_a_second[2] = {0, 500000000};
	system_call(number_nanosleep, (long)half_a_second, 0, 0);
	long process = system_call(number_getpid, 0, 0, 0), thread = system_call(number_gettid, 0, 0, 0);
	system_call(number_tgkill, process, thread, signal_abort);
}

__attribute__((noinline)) static int load_next(int batch)
{
	while (pending)
		system_call(number_pause, 0, 0, 0);
	return batch + 1;
}

long stacks[2][512];
long start_thread(long *stack_end, void (*begin)(void));

int main(void)
{
	start_thread(stacks[0] + 512, inspecting_thread);
	start_thread(stacks[1] + 512, driver_thread);
	return load_next(7);
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
	"	mov %rsi, %r8\n"
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
	"	call *%r8\n"
	"	xor %edi, %edi\n"
	"	mov $60, %eax\n" // exit
	"	syscall\n"
	"	.cfi_endproc\n"
	".size thread_entry, .-thread_entry\n");
