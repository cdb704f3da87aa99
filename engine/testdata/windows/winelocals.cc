// SPDX-License-Identifier: Apache-2.0
//
// A program of Windows with variables of many types in a function that faults: it writes a minidump of itself.
//
//   winelocals.exe FILE
#include <windows.h>
#include <dbghelp.h>

#define NOINLINE __attribute__((noinline))

enum Color { Red, Green = 5, Blue };
enum class Kind : unsigned char { A = 1, B };
struct Base { int id; virtual ~Base() {} };
struct Point : Base { double x, y; unsigned flag : 3; int rest : 5; Color color; };
union Either { int i; float f; };
template <class T> struct Box { T value; T *next; };
typedef int (*Function)(int);

static const char *out;

NOINLINE int leaf(int n, const char *text, const Point &p, double d) {
	bool flag = n > 2;
	char c = 'x';
	short s = -7;
	long long big = 0x123456789abcLL;
	unsigned u = 4000000000u;
	float f = 1.5f;
	wchar_t w = L'y';
	int list[3] = {1, 2, n};
	Either either;
	either.i = 42;
	Kind kind = Kind::B;
	Color color = Blue;
	Box<int> box = {9, &list[1]};
	Box<Box<short>> deep = {{3, &s}, nullptr};
	void *v = list;
	int &ref = list[2];
	int grid[2][2] = {{1, 2}, {3, 4}};
	ref = *(volatile int *)0x60;
	return ref + flag + c + big + u + f + w + (int)kind + color + box.value + (v != deep.next) + grid[1][1] + p.id + *text + d;
}

NOINLINE int middle(Point p, int depth) {
	Function function = nullptr;
	int count = depth * 2;
	if (depth) {
		int inner = count + 1;
		return middle(p, depth - 1) + inner;
	}
	return leaf(count + 3, "text", p, 2.25) + (function != nullptr);
}

LONG CALLBACK filter(EXCEPTION_POINTERS *exception) {
	MINIDUMP_EXCEPTION_INFORMATION information = {GetCurrentThreadId(), exception, FALSE};
	HANDLE file = CreateFileA(out, GENERIC_WRITE, 0, 0, CREATE_ALWAYS, 0, 0);
	MiniDumpWriteDump(GetCurrentProcess(), GetCurrentProcessId(), file, MiniDumpNormal, &information, 0, 0);
	CloseHandle(file);
	ExitProcess(0);
}

int main(int count, char **v) {
	out = v[1];
	SetUnhandledExceptionFilter(filter);
	Point p;
	p.id = 1;
	p.x = 1.5;
	p.y = -2;
	p.flag = 5;
	p.rest = -3;
	p.color = Green;
	unsigned long long total = 1ULL << 40;
	return middle(p, 2) + (int)total + count;
}
