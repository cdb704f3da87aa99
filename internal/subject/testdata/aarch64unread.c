// A function whose code does not tell where its frame is: it takes the stack and the frame
// pointer from memory, as they were, before and behind the call of what crashes.
#define NOINLINE __attribute__((noinline, noclone))

volatile int zero;
long kept;
NOINLINE int reads(int *p) { volatile char room[32]; room[zero] = 1; return *p + room[0]; }
NOINLINE int unread(int *p)
{
	volatile char room[64];
	__asm__ volatile("str x29, [%0]\n\tldr x29, [%0]\n\tmov x9, sp\n\tstr x9, [%0]\n\tldr x9, [%0]\n\tmov sp, x9" : : "r"(&kept) : "x9", "memory");
	room[zero] = 1;
	int sum = reads(p) + room[0];
	__asm__ volatile("ldr x9, [%0]\n\tmov sp, x9" : : "r"(&kept) : "x9", "memory");
	return sum;
}
NOINLINE int above(int *p) { volatile char room[64]; room[zero] = 1; return unread(p) + room[0]; }
NOINLINE int outer(int *p) { volatile char room[128]; room[zero] = 1; return above(p) + room[0]; }
int main(void) { return outer((int *)(long)zero) + 1; }
