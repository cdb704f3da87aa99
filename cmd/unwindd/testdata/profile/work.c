/* The program of the recordings in base and new: two processes parse, hash and emit. */
typedef unsigned long number;
static volatile number sink;

__attribute__((noinline)) static void spin(number n)
{
	for (number i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) static void parse(void)
{
	spin(PARSE);
	sink++;
}

__attribute__((noinline)) static void HASH(void)
{
	spin(12000000);
	sink++;
}

__attribute__((noinline)) static void emit(void)
{
	for (number i = 0; i < 12000000; i++)
		sink ^= i;
}

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 4; i++) {
		parse();
		HASH();
		emit();
	}
	sink++;
}

static long call(long number, long a, long b)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return result;
}

int start(void)
{
	int child = (int)call(57, 0, 0); /* fork */
	if (child == 0)
		call(157, 15, (long)"helper"); /* prctl(PR_SET_NAME) */
	work();
	if (child != 0)
		call(61, -1, 0); /* wait4 */
	call(60, 0, 0);
	return 0;
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\n call start\n");
