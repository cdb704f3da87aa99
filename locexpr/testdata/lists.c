/* Code whose variables move: locations of every kind that gcc writes. */
typedef struct { long a, b; } pair;
typedef struct { char tag; int n; double x; } mixed;

extern long sink(long), source(void);
extern void take(pair *), log_error(const char *) __attribute__((cold));
double scale = 1.5;
long counts[16];

static inline pair twice(pair p) { pair q = { p.a * 2, p.b + p.a }; return q; }
static inline long through(const long *p) { long v = *p; return v ? v * 3 : sink(v); }

long pieces(long n)
{
	pair p = { n, n + 1 };
	for (int i = 0; i < 10; i++) {
		pair q = twice(p);
		long mean = (q.a + q.b) / 2;
		p = q;
		if (sink(mean) > 100)
			p.a -= mean & 15;
	}
	return p.a ^ p.b;
}

long pointers(long n)
{
	long local = n * 7;
	const long *where = &local; /* optimized out: implicit pointers */
	long r = through(where);
	pair p = { r, local };
	pair *pp = &p;
	long sum = pp->a + pp->b;
	sink(sum);
	return sink(sum - pp->a);
}

double floats(double x, int n)
{
	float half = 0.5f;
	double acc = 0.0, third = 1.0 / 3;
	for (int i = 0; i < n; i++) {
		double term = x * scale + third;
		acc += term;
		if (acc > 1e9) { half = 0.25f; acc *= half; }
	}
	mixed m = { 'x', n, acc };
	sink(m.n + m.tag);
	return acc * half + m.x;
}

unsigned __int128 wide(unsigned long a, unsigned char b)
{
	unsigned __int128 v = a;
	unsigned short narrow = a * b;
	v = v << b | narrow;
	sink((long)(v >> 64));
	return v * 3;
}

long hot_and_cold(long n, pair *p)
{
	long before = p->a, after;
	take(p);
	if (__builtin_expect(p->a < before, 0)) {
		log_error("lower");
		log_error("still");
		after = sink(before - p->a);
		log_error("done");
		return after;
	}
	after = p->b * n;
	pair local = { after, before };
	take(&local);
	return local.a + after;
}

long __attribute__((noinline)) recurse(long n, long acc, int depth)
{
	long next = n ^ acc;
	if (depth > 0)
		acc += recurse(next, acc * 3, depth - 1) + counts[n & 15];
	return acc + next;
}

long sink(long v) { __asm__ volatile("" : "+r"(v)); return v; }
long source(void) { return sink(3); }
void take(pair *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
void log_error(const char *s) { __asm__ volatile("" : : "r"(s) : "memory"); }

int main(int argc, char **argv)
{
	long total = 0;
	pair p = { argc, source() };
	for (char **arg = argv; *arg; arg++) {
		long n = **arg;
		total += pieces(n) + pointers(n) + (long)floats(n, argc);
		total ^= (long)wide(n, argc);
		total += hot_and_cold(n, &p) + recurse(n, total, 3);
	}
	return total & 1;
}
