// SPDX-License-Identifier: Apache-2.0
//
// A program of Windows that waits in a system call, which known functions have called, through code of the
// system, in one of several ways:
//
//   wine.exe WAY
//   wine.exe dump PROCESS FILE TYPE
//
// Each of its functions prints its return address as it is called: "called ADDRESS". Then it prints "ready" and its
// process's ID. The second form writes a minidump of such a process, with a MINIDUMP_TYPE in hexadecimal.
#include <windows.h>
#include <dbghelp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define CALLED() (printf("called %p\n", __builtin_return_address(0)), fflush(stdout))

static volatile int sink;
static bool isFaulting; // the next to wait faults instead

NOINLINE void wait_here(int n) {
	CALLED();
	if (isFaulting) {
		isFaulting = false;
		*(volatile int *)0x60 = n;
	}
	printf("ready %lu\n", GetCurrentProcessId());
	fflush(stdout);
	Sleep(10 * 60 * 1000);
	sink = n;
}

NOINLINE void called(int n) {
	CALLED();
	volatile char room[200];
	room[n] = 1;
	wait_here(n + room[n]);
	sink = room[n];
}

// A window procedure is called by the code for Unix that makes the window.
NOINLINE HWND make_window(int nested) {
	CALLED();
	HWND w = CreateWindowA("nested", "", 0, 0, 0, 9, 9, HWND_MESSAGE, 0, GetModuleHandleA(0), (void *)(INT_PTR)nested);
	sink = nested;
	return w;
}

LRESULT CALLBACK procedure(HWND w, UINT message, WPARAM a, LPARAM b) {
	if (message == WM_NCCREATE) {
		CALLED();
		int nested = (int)(INT_PTR)((CREATESTRUCTA *)b)->lpCreateParams;
		if (nested > 0)
			make_window(nested - 1);
		else
			called(3);
	}
	return DefWindowProcA(w, message, a, b);
}

static void windows() {
	WNDCLASSA c = {};
	c.lpfnWndProc = procedure;
	c.lpszClassName = "nested";
	c.hInstance = GetModuleHandleA(0);
	RegisterClassA(&c);
	make_window(2);
}

BOOL CALLBACK monitor(HMONITOR, HDC, LPRECT, LPARAM p) { CALLED(); called((int)p); return TRUE; }
NOINLINE int compare(const void *, const void *) { CALLED(); called(4); return 0; }
DWORD WINAPI thread(void *) { CALLED(); called(5); return 0; }
void CALLBACK apc(ULONG_PTR p) { CALLED(); called((int)p); sink = 6; }
LONG CALLBACK filter(EXCEPTION_POINTERS *) { CALLED(); called(7); return EXCEPTION_EXECUTE_HANDLER; }

static void faults() {
	isFaulting = true;
	int list[] = {3, 1, 2};
	qsort(list, 3, sizeof *list, compare);
}

struct Guard {
	NOINLINE ~Guard() { CALLED(); called(9); sink = 9; }
};

NOINLINE void throws() { throw 1; }
NOINLINE void guarded() { CALLED(); Guard g; throws(); }

static int dump(char **v) {
	DWORD id = atoi(v[0]);
	HANDLE process = OpenProcess(PROCESS_ALL_ACCESS, FALSE, id);
	HANDLE file = CreateFileA(v[1], GENERIC_WRITE, 0, 0, CREATE_ALWAYS, 0, 0);
	return !MiniDumpWriteDump(process, id, file, (MINIDUMP_TYPE)strtol(v[2], 0, 16), 0, 0, 0);
}

int main(int, char **v) {
	const char *way = v[1];
	if (!strcmp(way, "dump")) return dump(v + 2);
	if (!strcmp(way, "call")) called(1);
	if (!strcmp(way, "windows")) windows();
	if (!strcmp(way, "monitor")) EnumDisplayMonitors(0, 0, monitor, 2);
	if (!strcmp(way, "thread")) WaitForSingleObject(CreateThread(0, 0, thread, 0, 0, 0), INFINITE);
	if (!strcmp(way, "apc")) { QueueUserAPC(apc, GetCurrentThread(), 6); SleepEx(1000, TRUE); }
	if (!strcmp(way, "filter")) { SetUnhandledExceptionFilter(filter); faults(); }
	if (!strcmp(way, "vectored")) { AddVectoredExceptionHandler(1, filter); faults(); }
	if (!strcmp(way, "unwind")) try { guarded(); } catch (int k) { sink = k; }
}
