// A program that crashes and dumps itself, on Windows x86-64:
//
//   crash.exe NAME LAST
//
// It writes NAME-0.dmp (MiniDumpNormal) and where LAST is 2 NAME-2.dmp
// (MiniDumpWithFullMemory).
// Before, it prints the return addresses of its stacks, the innermost first, as the system
// itself finds them: "crash ADDRESS" of the thread that crashes, "wait ADDRESS" of one that
// waits.
#include <windows.h>
#include <dbghelp.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static const char *name;
static int last;
static HANDLE isWaiting;
static volatile int zero;

static LONG WINAPI write_dump(EXCEPTION_POINTERS *exception) {
	MINIDUMP_EXCEPTION_INFORMATION information = {GetCurrentThreadId(), exception, FALSE};
	for (int type = MiniDumpNormal; type <= last; type += 2) {
		char path[MAX_PATH];
		snprintf(path, sizeof path, "%s-%d.dmp", name, type);
		HANDLE file = CreateFileA(path, GENERIC_WRITE, 0, 0, CREATE_ALWAYS, 0, 0);
		if (!MiniDumpWriteDump(GetCurrentProcess(), GetCurrentProcessId(), file, type, &information, 0, 0))
			ExitProcess(4);
		CloseHandle(file);
	}
	ExitProcess(0);
}

static NOINLINE void say(const char *what) {
	void *list[62];
	int n = RtlCaptureStackBackTrace(1, 62, list, 0);
	for (int i = 0; i < n; i++)
		printf("%s %p\n", what, list[i]);
	fflush(stdout);
}

static NOINLINE int fault(int *address, int n) {
	say("crash");
	return *address + n;
}

static inline __attribute__((always_inline)) int inlined(int n) {
	return fault((int *)(long long)(8 * n + 0x40), n) + 1;
}

// Saves registers that only Windows keeps: rsi, rdi, xmm6 to xmm9.
NOINLINE double saves(double a, double b, double c, double d, int n, int m, int k) {
	double e = a * b, f = c * d, g = a - d, h = b + c;
	int r = inlined(n) + m * k;
	return e + f * g + h + r + n * m * k;
}

// A frame whose size is not known: the frame register holds it.
NOINLINE int dynamic(int n) {
	volatile char *p = __builtin_alloca(n * 32 + 16);
	p[n] = (char)n;
	return (int)saves(n, n + 1.5, n + 2.5, n + 3.5, n, n + 1, n + 2) + p[n];
}

// A frame of more than a page.
NOINLINE int large(int n) {
	volatile char p[20000];
	p[n] = (char)n;
	return dynamic(n + 1) + p[n];
}

static NOINLINE int recurse(int n) {
	return n == 0 ? large(zero + 3) : recurse(n - 1) + n;
}

// The C library calls it.
static int compare(const void *a, const void *b) {
	return *(const int *)a == 2 || *(const int *)b == 2 ? recurse(4) : *(const int *)a - *(const int *)b;
}

static NOINLINE int sort(void) {
	int list[] = {3, 1, 2};
	qsort(list, 3, sizeof list[0], compare);
	return list[0];
}

static NOINLINE int park(int n) {
	say("wait");
	SetEvent(isWaiting);
	WaitForSingleObject(GetCurrentThread(), INFINITE);
	return n + 1;
}

static NOINLINE int park_deeper(int n) { return n == 0 ? park(n) + 1 : park_deeper(n - 1) + 2; }

static DWORD WINAPI waiter(void *argument) { return park_deeper(3) + (argument != 0); }

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	name = argv[1];
	last = atoi(argv[2]);
	SetUnhandledExceptionFilter(write_dump);
	isWaiting = CreateEventA(0, 0, 0, 0);
	CreateThread(0, 0, waiter, 0, 0, 0);
	WaitForSingleObject(isWaiting, INFINITE);
	return sort();
}
