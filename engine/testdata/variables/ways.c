/* Tail calls by which there are several ways from a caller to a function. Each part
 * calls the next one. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

/* by_two_ways called first, which left for one of left and right, and that for join,
 * which left for last. */
NOINLINE long last(long n) {
	sink = n;
	if (sink != 99)
		abort();
	return n + sink;
}
NOINLINE long join(long n) { sink++; return last(n * 2); }
NOINLINE long left(long n) { sink += n; return join(n + 1); }
NOINLINE long right(long n) { sink -= n; return join(n - 1); }
NOINLINE long first(long n) {
	if (sink & 1)
		return left(n);
	return right(n);
}
NOINLINE long by_two_ways(long n) {
	long r = first(n);
	return r + sink;
}

/* in_circles called ping, which came to itself through pong before it left for
 * landing. */
NOINLINE long landing(long n) {
	long r = by_two_ways(n);
	return r + sink;
}
NOINLINE long pong(long n);
NOINLINE long ping(long n) {
	sink++;
	if (n <= 0)
		return landing(n);
	return pong(n - 1);
}
NOINLINE long pong(long n) { sink--; return ping(n - 1); }
NOINLINE long in_circles(long n) {
	long r = ping(n);
	return r + sink;
}

/* by_pointer called hub, which left for what a pointer says. */
NOINLINE long target(long n) {
	long r = in_circles(n);
	return r + sink;
}
long (*volatile pointer)(long) = target;
NOINLINE long hub(long n) { sink = n; return pointer(n + 1); }
NOINLINE long by_pointer(long n) {
	long r = hub(n);
	return r + sink;
}

int main(int argc, char **argv) {
	(void)argv;
	return (int)by_pointer(argc + 3) + 1;
}
