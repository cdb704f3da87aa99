// crash KIND fails in the way of the table at the end.
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

struct item { char head[24]; int value; struct item *next; };
struct item *volatile nothing;
volatile int zero, one = 1, sink;
volatile uintptr_t wild;

NOINLINE int member(struct item *it) { return it->value; }
NOINLINE void set_member(struct item *it) { it->value = 7; }
NOINLINE void add_member(struct item *it) { it->value++; }
struct order { int id; struct item items[4]; };
NOINLINE int deep_member(struct order *o) { return o->items[1].head[5]; }
NOINLINE int element(int *list, long i) { return list[i]; }
NOINLINE int through(int *p) { return *p; }
NOINLINE void set(char *p) { *p = 1; }

static void null_read(void) { sink = member(nothing); }
static void null_write(void) { set_member(nothing); }
static void null_update(void) { add_member(nothing); }
static void null_deep(void) { sink = deep_member((struct order *)nothing); }
static void null_index(void) { sink = element((int *)nothing, 5 + zero); }
static void null_string(void) { sink = (int)strlen((char *)nothing); }
static void null_copy(void) { memcpy((char *)nothing + zero, "some bytes that are copied", 26); }

static void freed(void)
{
	char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p, 1 << 20);
	sink = through((int *)(p + 64));
}
static void behind(void)
{
	char *p = mmap(0, 2 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + (1 << 12), 1 << 12);
	set(p + (1 << 12) + 8);
}
static void guard(void)
{
	char *p = mmap(0, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set(p + (1 << 19));
}
static void constant(void) { wild = (uintptr_t)"a constant"; set((char *)wild); }
static void code_write(void) { set((char *)(uintptr_t)member); }
static void not_canonical(void) { wild = 0xdead00000000beef; sink = through((int *)wild); }
static void flipped(void) { wild = (uintptr_t)&sink ^ 1ull << 58; sink = through((int *)wild); }
static void flipped_low(void) { wild = (uintptr_t)&sink ^ 1ull << 40; sink = through((int *)wild); }
static void text(void) { memcpy((void *)&wild, "AAAABBBB", 8); sink = through((int *)wild); }
static void pattern(void) { memset((void *)&wild, 0x5a, 8); sink = through((int *)wild); }

NOINLINE int deep(int n) { volatile char room[64]; room[0] = (char)n; return deep(n + 1) + room[0]; }
static void overflow(void) { sink = deep(0); }
NOINLINE int odd(int n);
NOINLINE int even(int n) { volatile char room[64]; room[0] = (char)n; return odd(n + 1) + room[0]; }
NOINLINE int odd(int n) { volatile char room[64]; room[0] = (char)n; return even(n + 1) + room[0]; }
static void *overflowing(void *unused) { (void)unused; sink = even(0); return 0; }
static void overflow_thread(void)
{
	pthread_t t;
	pthread_create(&t, 0, overflowing, 0);
	pthread_join(t, 0);
}
static void overflow_array(void) { volatile char room[16 << 20]; room[0] = 1; sink = room[zero]; }

static void call_null(void) { void (*volatile f)(void) = 0; f(); }
static char data[64] __attribute__((aligned(16))) = "\xc3";
static void call_data(void) { void (*volatile f)(void) = (void (*)(void))(uintptr_t)data; f(); }
static void call_wild(void) { void (*volatile f)(void) = (void (*)(void))0x123456789000; f(); }
static void call_not_canonical(void) { void (*volatile f)(void) = (void (*)(void))0x4141414141414141; f(); }
NOINLINE void smashed(void) { volatile uintptr_t *frame = __builtin_frame_address(0); frame[1] = 0x4242424242424242; }

static void divide(void) { sink = one / zero; }
static void quotient(void) { sink = (int)0x80000000 / (zero - one); }
static void undefined(void) { __builtin_trap(); }
#ifdef __aarch64__
static void privileged(void) { __asm__ volatile("hvc #0"); }
static void breakpoint(void) { __asm__ volatile("brk #0"); }
static void halt(void) { __asm__ volatile("hlt #1"); }
static void bad_opcode(void) { __asm__ volatile("udf #7"); }
static void unallocated(void) { __asm__ volatile(".inst 0xffffffff"); }
static void misaligned(void) { __asm__ volatile("ldaxr x0, [%0]" : : "r"(data + 1) : "x0", "memory"); }
NOINLINE int signed_element(int *list, int i) { return list[i]; }
static void null_signed(void) { sink = signed_element((int *)nothing + 8, -5 + zero); }
static void tagged(void) { wild = (uintptr_t)&one | 0x5aull << 56; sink = through((int *)wild); wild = 0x5a00000000000008; sink = through((int *)wild); }
static void atomic(void) { __atomic_fetch_add(&nothing->value, 1, __ATOMIC_SEQ_CST); }
static void pair(void) { uintptr_t a, b; __asm__ volatile("ldp %0, %1, [%2, #16]" : "=r"(a), "=r"(b) : "r"(nothing)); sink = (int)(a + b); }
static void zeroed(void) { __asm__ volatile("dc zva, %0" : : "r"(nothing) : "memory"); }
static void jump_odd(void) { void (*volatile f)(void) = (void (*)(void))((uintptr_t)member + 2); f(); }
#else
static void privileged(void) { __asm__ volatile("hlt"); }
static void breakpoint(void) { __asm__ volatile("int3"); }
static void bad_opcode(void) { __asm__ volatile(".byte 0x0f, 0x04"); }
static void misaligned(void) { __asm__ volatile("movaps %%xmm0, 8(%0)" : : "r"(data) : "memory"); }
#endif

static void aborted(void) { abort(); }
static void assertion(void) { assert(one == 2 && "numbers"); }
static void double_free(void) { void *volatile p = malloc(24); free(p); free(p); }

static void bad_free(void) { free((void *)(data + 16)); }
NOINLINE void fill(char *p, int n) { memset(p, 0x41, (size_t)n); }
static void heap(void) { wild = (uintptr_t)malloc(24); fill((char *)wild, 64); wild = (uintptr_t)malloc(5000); }
static void smash(void) { char room[16]; fill(room, 64 + zero); sink = room[3]; }
static void fortified(void) { char room[8]; strcpy(room, one ? "a text that is too long" : ""); sink = room[3]; }

static void cut(void)
{
	char name[] = "cut.XXXXXX";
	int fd = mkstemp(name);
	if (ftruncate(fd, 3 << 12)) return;
	char *p = mmap(0, 3 << 12, PROT_READ, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 1 << 12)) return;
	sink = through((int *)(p + (2 << 12) + 16));
}
static void killed(void) { kill(getpid(), SIGSEGV); pause(); }
static void raised(void) { raise(SIGFPE); }
static void by_other(void)
{
	pid_t me = getpid();
	if (fork() == 0) { kill(me, SIGBUS); _exit(0); }
	for (;;) pause();
}
static void refused(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, filter};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	sink = socket(AF_INET, SOCK_STREAM, 0);
}
static void cpu_time(void)
{
	struct rlimit limit = {1, 5};
	setrlimit(RLIMIT_CPU, &limit);
	for (;;) sink++;
}
static void file_size(void)
{
	char name[] = "size.XXXXXX";
	int fd = mkstemp(name);
	struct rlimit limit = {1 << 30, RLIM_INFINITY}; // it bounds the core too
	setrlimit(RLIMIT_FSIZE, &limit);
	if (pwrite(fd, "x", 1, 1l << 31) < 0) return;
}

static const struct { const char *name; void (*fail)(void); } kinds[] = {
#define KIND(f) {#f, f},
	KIND(null_read) KIND(null_write) KIND(null_update) KIND(null_index) KIND(null_deep) KIND(null_string) KIND(null_copy)
	KIND(freed) KIND(behind) KIND(guard) KIND(constant) KIND(code_write) KIND(not_canonical) KIND(flipped) KIND(flipped_low)
	KIND(text) KIND(pattern) KIND(overflow) KIND(overflow_thread) KIND(overflow_array) KIND(call_null) KIND(call_data)
	KIND(call_wild) KIND(call_not_canonical) KIND(smashed) KIND(divide) KIND(quotient) KIND(undefined) KIND(privileged)
	KIND(breakpoint) KIND(bad_opcode) KIND(misaligned) KIND(aborted) KIND(assertion) KIND(double_free) KIND(heap)
	KIND(bad_free) KIND(smash) KIND(fortified) KIND(cut) KIND(killed) KIND(raised) KIND(by_other) KIND(refused)
	KIND(cpu_time) KIND(file_size)
#ifdef __aarch64__
	KIND(halt) KIND(unallocated) KIND(null_signed) KIND(tagged) KIND(atomic) KIND(pair) KIND(zeroed) KIND(jump_odd)
#endif
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			kinds[i].fail();
			return 1;
		}
	return 2;
}
