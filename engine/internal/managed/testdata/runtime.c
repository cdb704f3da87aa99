/* What Go's runtime says of its goroutines, in C: two that wait, one that ended and one
   that is none. runtime.elf is made of it by make.sh. */
typedef unsigned long uintptr;
typedef unsigned char waitReason;
struct runtime_stack { uintptr lo, hi; };
struct runtime_gobuf { uintptr sp, pc, ctxt, bp; };
struct string { const char *str; long len; };
struct runtime_g;
struct runtime_m { long before; unsigned long procid; struct runtime_g *curg; };
struct runtime_g {
	struct runtime_stack stack;
	struct runtime_m *m;
	struct runtime_gobuf sched;
	uintptr syscallsp, syscallpc;
	unsigned atomicstatus;
	unsigned long goid, waitsince;
	waitReason waitreason;
	uintptr lockedm;
	unsigned long parentGoid;
	uintptr gopc, startpc;
};
struct slice { struct runtime_g **array; long len, cap; };

__attribute__((section(".note.go.buildid"), used)) static const char note[] = "go";

static struct runtime_m machine = {0, 4711, 0};
static struct runtime_g first = {{0x10000, 0x20000}, 0, {0x1f000, 0x401000, 0, 0}, 0, 0, 4, 5, 7, 1};
static struct runtime_g second = {{0x20000, 0x30000}, &machine, {0, 0, 0, 0}, 0x2f000, 0x401000, 3, 6};
static struct runtime_g ended = {{0, 0}, 0, {0, 0, 0, 0}, 0, 0, 6, 7};
static struct runtime_g *list[] = {&first, &second, &ended, (struct runtime_g *)8};
struct runtime_g **runtime_allgptr = list;
uintptr runtime_allglen = 4;
struct slice runtime_allgs = {list, 4, 4};
struct string runtime_waitReasonStrings[] = {{"", 0}, {"chan receive", 12}};
