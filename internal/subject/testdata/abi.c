/* SPDX-License-Identifier: Apache-2.0
 *
 * Crashes below functions with parameters and locals of every kind: "data" reads at null,
 * "call" calls there, "sorted" reads in a function that qsort called, "handler" crashes in a
 * handler of the signal of a crash, "tail" below a function that was left by a tail call. BARE
 * is for programs without a C library. */
#ifdef BARE
#include "bare.h"
#else
#include <complex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#endif

#define NOINLINE __attribute__((noinline, noclone))

typedef enum { RED, GREEN = 3 } color;
struct bits { unsigned a : 3, b : 11; signed c : 9; unsigned long long d : 40; color e : 4; };
struct small { unsigned char x; short y; };
struct pair { float x, y; };
union either { double d; unsigned w[2]; unsigned char c[8]; };
struct all {
	struct bits bits;
	union either u;
	color k;
	float f;
	long double ld;
	double _Complex z;
	float _Complex zf;
	short s[3];
	_Bool t;
	unsigned char uc;
	__int128 wide;
	const char *text;
	struct all *self;
};

static volatile int sink;
static const char *mode;
static int *nowhere;

NOINLINE static int crash(void) {
	if (!strcmp(mode, "call"))
		return ((int (*)(void))nowhere)() + 1;
	return *(volatile int *)nowhere + 1;
}

NOINLINE static int compare(const void *a, const void *b) {
	const int *x = a, *y = b;
	sink += *x;
	return crash() + *y;
}

NOINLINE static int narrow(signed char ch, unsigned char uc, short ss, unsigned short us, _Bool t, color k, int i, unsigned u, long l, unsigned long long ll) {
	int numbers[4] = {4, 3, 2, 1};
	if (!strcmp(mode, "sorted"))
		qsort(numbers, 4, sizeof *numbers, compare);
	int r = crash();
	sink = r + numbers[0];
	return r + ch + uc + ss + us + t + k + i + (int)u + (int)l + (int)ll;
}

NOINLINE static int floats(float f, double d, long double ld, double _Complex z, float _Complex zf, struct pair p, struct small s) {
	volatile long double near = ld / 3;
	volatile double _Complex kept = z;
	int r = narrow('z', 200, -2, 65535, 1, GREEN, -123456, 4000000000u, -1234567890123L, 0xfedcba9876543210ULL);
	sink = (int)near + (int)creal(kept);
	return r + (int)f + (int)d + (int)ld + (int)creal(z) + (int)crealf(zf) + (int)p.x + s.x + s.y;
}

NOINLINE static int last(struct all *a, const char *text) {
	volatile struct all copy = *a;
	signed char ch = copy.s[0];
	unsigned short us = copy.s[1];
	float f = copy.f;
	double d = copy.u.d;
	long double ld = copy.ld;
	struct pair p = {1.5f, -2.25f};
	struct small s = {7, -7};
	int r = floats(0.5f, -2.75, -3.25L, 1 + 2i, 3 + 4i, p, s);
	sink = r + ch + us + (int)f + (int)d + (int)ld + copy.s[2] + text[0];
	return sink;
}

NOINLINE static int left(struct all *a, const char *text) { return last(a, text + 1); }

NOINLINE static int middle(struct all *a, const char *text) {
	volatile char room[40];
	room[3] = text[0];
	int r = strcmp(mode, "tail") ? last(a, text) : left(a, text);
	return r + room[3];
}

static void handler(int number, siginfo_t *info, void *context) {
	static int depth;
	if (depth++ == 0)
		sink = crash() + number;
	abort();
}

#ifdef BARE
static
#endif
int main(int argc, char **argv) {
	static struct all b = {
		.bits = {5, 1000, -100, 0x8912345678ULL, GREEN}, .u = {.d = 1.5}, .k = GREEN, .f = -0.25f, .ld = -3.5L,
		.z = 1 + 2i, .zf = 3 + 4i, .s = {-7, -2, 3}, .t = 1, .uc = 200, .wide = -5, .text = "text", .self = &b,
	};
	mode = argc > 1 ? argv[1] : "data";
	if (!strcmp(mode, "handler")) {
		struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
		sigaction(SIGSEGV, &action, 0);
	}
	return middle(&b, argv[0]) + argc;
}
