// SPDX-License-Identifier: Apache-2.0
//
// A program of Windows for 32-bit x86 that crashes and writes a minidump of itself:
//
//   crash32.exe WAY
//
// Each of its functions prints its return address as it is called: "called ADDRESS".
#include <windows.h>
#include <dbghelp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#define NOINLINE __attribute__((noinline))
#define CALLED() (printf("called %p\n", __builtin_return_address(0)), fflush(stdout))

static volatile int sink, way;

static LONG WINAPI crashed(EXCEPTION_POINTERS *pointers) {
	HANDLE file = CreateFileA("crash32.dmp", GENERIC_WRITE, 0, 0, CREATE_ALWAYS, 0, 0);
	MINIDUMP_EXCEPTION_INFORMATION information = {GetCurrentThreadId(), pointers, FALSE};
	MiniDumpWriteDump(GetCurrentProcess(), GetCurrentProcessId(), file, MiniDumpNormal, &information, 0, 0);
	CloseHandle(file);
	ExitProcess(0);
}

typedef int (*Function)(int);
static NOINLINE int fault(int n) {
	CALLED();
	if (way == 1) return *(volatile int *)8 + n;
	if (way == 2) { Function f = (Function)0x10; return f(n) + 1; }
	if (way == 3) { __builtin_trap(); }
	if (way == 4) { RaiseException(0xe0000001, 0, 0, 0); }
	return n / (sink & 0x10000000);
}
static NOINLINE int plain(int a, int b, int c) { CALLED(); int k = fault(a + b); sink = k; return k + c; }
static NOINLINE int __stdcall standard(int a, int b, int c, int d) { CALLED(); int k = plain(a, b, c); sink = k; return k * d; }
static NOINLINE int __fastcall fast(int a, int b, int c) { CALLED(); int k = standard(a, b, c, a); sink = k + a; return k + b; }
static NOINLINE int big(int n) { CALLED(); volatile char room[20000]; room[n] = 3; int k = fast(n, room[n], 3); sink = room[n + 1]; return k; }
static NOINLINE int dynamic(int n) { CALLED(); volatile char *p = (volatile char *)_alloca(n * 40 + 3); p[n] = 1; int k = big(n + p[n]); sink = p[1]; return k; }
static NOINLINE int aligned(int n) {
	CALLED();
	alignas(64) volatile float v[16] = {1};
	v[n & 15] = 2;
	int k = dynamic(n + (int)v[n & 15]);
	sink = (int)v[3];
	return k;
}
static NOINLINE int both(int n) { // aligned, and of a size that is not constant
	CALLED();
	alignas(32) volatile int v[8] = {1};
	volatile int *p = (volatile int *)_alloca(n * 8 + 4);
	p[0] = v[n & 7];
	int k = aligned(n + p[0]);
	sink = v[2] + p[0];
	return k;
}
static NOINLINE int saves(int *p, int n) {
	CALLED();
	int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4];
	int k = both(n);
	p[4] = a; p[3] = b; p[2] = c; p[1] = d; p[0] = e;
	return k + a * b + c * d * e;
}
struct Thing {
	int v;
	virtual NOINLINE int method(int n) { CALLED(); int list[] = {n, v, 3, 4, 5}; int k = saves(list, n); sink = list[1]; return k + v; }
	virtual ~Thing() {}
};
static NOINLINE int byvalue(Thing t, double d, long long l) { CALLED(); int k = t.method((int)d); sink = k; return k + (int)l; }
static NOINLINE int variadic(int n, ...) {
	CALLED();
	va_list list;
	va_start(list, n);
	int a = va_arg(list, int);
	Thing t; t.v = a;
	int k = byvalue(t, 2.0, n);
	sink = va_arg(list, int);
	va_end(list);
	return k;
}
static int __cdecl compare(const void *a, const void *) { CALLED(); int k = variadic(3, 5, *(int *)a); sink = k; return 1; }
static NOINLINE int sorts(int n) { CALLED(); int list[] = {3, n, 2}; qsort(list, 3, sizeof *list, compare); return list[0]; }
static NOINLINE int recursive(int n) { CALLED(); int k = n ? recursive(n - 1) : sorts(n); sink = k; return k + n; }
static NOINLINE int many(int a, int b, int c, int d, int e, int f) {
	CALLED();
	int k = 0;
	for (int i = 0; i < 2; i++) k += recursive(a + i) * b + plain(c, d, e) * f;
	sink = k;
	return k;
}
static DWORD WINAPI thread(void *p) { CALLED(); int k = many(2, 2, 3, 4, 5, 6); sink = k; return k; }
static BOOL CALLBACK once(PINIT_ONCE, void *, void **) { CALLED(); many(2, 2, 3, 4, 5, 6); sink = 1; return TRUE; }
struct Guard { NOINLINE ~Guard() { CALLED(); many(1, 2, 3, 4, 5, 6); sink = 9; } };
static NOINLINE void throws() { if (sink != -7) throw 1; }
static NOINLINE void guarded() { CALLED(); Guard g; throws(); }
int main(int, char **v) {
	SetUnhandledExceptionFilter(crashed);
	way = atoi(v[1]);
	const char *where = v[2] ? v[2] : "";
	if (!strcmp(where, "thread")) WaitForSingleObject(CreateThread(0, 0, thread, 0, 0, 0), INFINITE);
	if (!strcmp(where, "once")) { static INIT_ONCE o; InitOnceExecuteOnce(&o, once, 0, 0); }
	if (!strcmp(where, "unwind")) try { guarded(); } catch (int k) { sink = k; }
	sink = many(2, 2, 3, 4, 5, 6);
	return sink;
}
