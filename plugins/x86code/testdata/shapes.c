// Functions of many shapes, compiled by the tests with several options.
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int sink;

NOINLINE int leaf(int a, int b) { return a * b + sink; }

NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
	return leaf(a, b) + leaf(c, d) + leaf(e, f) + leaf(g, h) + leaf(i, j);
}

NOINLINE int nested(int n) {
	int total = 0;
	for (int i = 0; i < n; i++) {
		total += many(i, n, total, 4, 5, 6, 7, i + 1, i + 2, i + 3);
		if (total > 1000)
			return leaf(total, i);
	}
	return total;
}

NOINLINE void variable(int n, char *out) {
	char *p = alloca(n);
	memset(p, n, n);
	memcpy(out, p, n);
	sink = out[n / 2];
}

NOINLINE int array(int n) {
	int v[n];
	for (int i = 0; i < n; i++)
		v[i] = leaf(i, n);
	return v[n / 2];
}

struct wide {
	_Alignas(64) char bytes[256];
};

NOINLINE int aligned(int n) {
	struct wide w;
	memset(&w, n, sizeof w);
	variable(n & 63, w.bytes);
	return w.bytes[n & 255];
}

NOINLINE int aligned_arguments(int a, int b, int c, int d, int e, int f, int g, int h) {
	struct wide w;
	memset(&w, a, sizeof w);
	sink = w.bytes[h & 255];
	return many(a, b, c, d, e, f, g, h, w.bytes[1], w.bytes[2]);
}

NOINLINE int printer(const char *format, ...) {
	char buffer[300];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(buffer, sizeof buffer, format, ap);
	va_end(ap);
	return n + buffer[0];
}

__attribute__((noreturn)) NOINLINE void fail(const char *what, int a, int b, int c, int d, int e, int f, int g) {
	fprintf(stderr, "%s %d %d %d %d %d %d %d\n", what, a, b, c, d, e, f, g);
	exit(3);
}

NOINLINE int choose(int kind, int n) {
	switch (kind) {
	case 0:
		return leaf(n, 1);
	case 1:
		n += nested(n);
		break;
	case 2:
		if (n < 0)
			fail("negative", n, 1, 2, 3, 4, 5, 6);
		n = array(n + 1);
		break;
	case 3:
		n -= aligned(n);
		break;
	case 4:
		if (n > 100)
			fail("large", n, 6, 5, 4, 3, 2, 1);
		// fall through
	case 5:
		n = printer("%d %d", n, kind);
		break;
	case 6:
		return aligned_arguments(n, 1, 2, 3, 4, 5, 6, 7);
	case 7:
		fail("seven", 7, 7, 7, 7, 7, 7, n);
	case 8:
		n = many(n, n, n, n, n, n, n, n, n, n);
		break;
	default:
		abort();
	}
	return leaf(n, kind);
}

NOINLINE int shrink_wrapped(int *p, int n) {
	if (!p)
		return -1;
	if (n < 3)
		return *p;
	int total = 0;
	while (n--)
		total += leaf(*p++, total);
	return total;
}

NOINLINE int tail(int n) {
	sink = n;
	return n & 1 ? leaf(n, n) : nested(n);
}

typedef int (*function)(int, int);
function functions[] = {leaf, choose};

NOINLINE int indirect(int n) {
	int a = functions[n & 1](n & 7, n);
	return functions[(n + 1) & 1](a & 7, n) + 1;
}

jmp_buf where;

NOINLINE int jumper(int n) {
	if (setjmp(where))
		return n;
	if (n > 5)
		longjmp(where, 1);
	return leaf(n, n);
}

NOINLINE double floats(double a, double b) {
	double x[8];
	for (int i = 0; i < 8; i++)
		x[i] = a * i + b;
	return x[leaf(3, 1) & 7] + (long double)a;
}

int main(int argc, char **argv) {
	char out[64];
	variable(argc, out);
	for (int i = 0; i < argc; i++)
		sink += choose(i, argc) + shrink_wrapped((int *)argv, i) + tail(i) + indirect(i) + jumper(i) + (int)floats(i, argc);
	return sink;
}
