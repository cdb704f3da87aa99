/* Functions that change what they were given before they call on, in every way in
 * which a call can pass a value, and calls that are left by tail calls. It fails at
 * its deepest function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

struct pair { long a, b; };
struct big { long a[8]; };
typedef long step(long, long);

volatile long sink;
long counter;

NOINLINE long fail(long depth, const char *why) {
	sink = depth + (long)strlen(why);
	if (sink > 0)
		abort();
	return depth + 1;
}

NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h, int i) {
	sink = a + b + c + d + e + f + g + h + i;
	long r = fail(sink & 7, "many");
	return r + sink;
}

NOINLINE long floats(double x, float y, long n) {
	sink = (long)(x * y) + n;
	long r = many(n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, (int)n + 8);
	return r + sink;
}

NOINLINE long structs(struct pair p, struct big q, struct pair *r) {
	sink = p.a + p.b + q.a[3] + r->b;
	long s = floats(2.5, 1.5f, 40);
	return s + sink;
}

static inline long inlined(struct pair *p, long k) {
	struct pair copy = { p->a + k, p->b };
	long s = structs(copy, (struct big){ { 1, 2, 3, 4, 5, 6, 7, k } }, p);
	return s + k;
}

NOINLINE long middle(long a, int b, char c) {
	struct pair p = { a, b };
	long s = inlined(&p, c);
	sink = p.a;
	return s + 1;
}

/* Left by a tail call: the frame of its caller says another callee. */
NOINLINE long tailed(long a, long b) {
	sink = a;
	return middle(a * 2, (int)b + 1, 'x');
}

NOINLINE long through(step *f, long a, long b) {
	long r = f(a + 1, b + 2);
	return r + sink;
}

NOINLINE long odd(long n, long x);
/* May come to itself by tail calls. */
NOINLINE long even(long n, long x) {
	counter++;
	if (n == 0) {
		long r = through(tailed, x, x + 1);
		return r + sink;
	}
	return odd(n - 1, x + 1);
}

NOINLINE long odd(long n, long x) {
	counter--;
	if (n == 0)
		return 1;
	return even(n - 1, x + 2);
}

/* Calls with values that are still there after the call. */
NOINLINE long begin(long flag) {
	long r = even(2, flag);
	return r + flag;
}

NOINLINE long landed(long a, long b) {
	sink = b;
	long r = begin(a + 1);
	return r + a;
}

NOINLINE long relay(long a, long b) {
	sink = a;
	return landed(b * 3, 7);
}

NOINLINE long depart(long flag) {
	long r = relay(flag, 5);
	return r + flag;
}

NOINLINE long deeper(long depth, long unused, int flag) {
	if (depth == 0) {
		long r = depart(flag);
		return r + 1;
	}
	long r = deeper(depth - 1, depth * 3, flag + 1);
	return r + depth;
}

NOINLINE int compare(const void *a, const void *b) {
	long x = *(const long *)a, y = *(const long *)b;
	if (x == 5 || y == 5) {
		long r = deeper(3, x, (int)y);
		return r > 0;
	}
	return x < y ? -1 : x > y;
}

NOINLINE long sorted(long *list, long n, int verbose) {
	qsort(list, n, sizeof *list, compare);
	if (verbose)
		puts("sorted");
	return list[0];
}

int main(int argc, char **argv) {
	long list[] = { 9, 7, 5, 3, 1, argc };
	counter = 2;
	long n = sorted(list, sizeof list / sizeof *list, argc > 1);
	printf("%ld %s\n", n, argv[0]);
	return 0;
}
