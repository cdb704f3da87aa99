/* Frames of many shapes for arm64, which need no library: see arm64_test.go. */
typedef __builtin_va_list va_list;
volatile int sink;
volatile double reals;
#define N __attribute__((noinline))
N void use(void *p) { sink += *(volatile char *)p; }
N long leaf(long a) { return a * 3 + sink; }
N double real(double a) { return a * 3 + reals; }
N void fails(long a) { for (;;) sink += a; }
void *memset(void *p, int c, unsigned long long n) { char *b = p; for (; n; n--) *b++ = c; return p; }
void *memcpy(void *p, const void *q, unsigned long long n) { char *b = p; const char *c = q; for (; n; n--) *b++ = *c++; return p; }
__asm__(".globl __chkstk\n__chkstk: ret\n.globl __security_check_cookie\n__security_check_cookie: ret");
unsigned long long __security_cookie = 1;

/* Integers and floating-point numbers that are kept over calls. */
#define X(k) x##k = leaf(a + k),
#define Y(m) y##m = real(d + m),
#define I0
#define I1 X(1)
#define I2 I1 X(2)
#define I3 I2 X(3)
#define I4 I3 X(4)
#define I5 I4 X(5)
#define I6 I5 X(6)
#define I7 I6 X(7)
#define I8 I7 X(8)
#define I9 I8 X(9)
#define I10 I9 X(10)
#define I11 I10 X(11)
#define I12 I11 X(12)
#define F0
#define F1 Y(1)
#define F2 F1 Y(2)
#define F3 F2 Y(3)
#define F4 F3 Y(4)
#define F5 F4 Y(5)
#define F6 F5 Y(6)
#define F7 F6 Y(7)
#define F8 F7 Y(8)
#define F9 F8 Y(9)
#define SUM (x1 ^ x2 * 3 ^ x3 * 5 ^ x4 * 7 ^ x5 * 11 ^ x6 * 13 ^ x7 * 17 ^ x8 * 19 ^ x9 * 23 ^ x10 * 29 ^ x11 * 31 ^ x12 * 37 ^ \
	(long)(y1 * y2 + y3 * y4 - y5 + y6 * y7 - y8 * y9))

#define BODY(k, m) \
	long x1 = 0, x2 = 0, x3 = 0, x4 = 0, x5 = 0, x6 = 0, x7 = 0, x8 = 0, x9 = 0, x10 = 0, x11 = 0, x12 = 0; \
	double y1 = 0, y2 = 0, y3 = 0, y4 = 0, y5 = 0, y6 = 0, y7 = 0, y8 = 0, y9 = 0; \
	I##k F##m (void)0;
#define FUNCTION(name, k, m, before, after) N long name##_##k##_##m(long a, long b, double d) { before BODY(k, m) after }
#define ARRAY(n) char c[n]; c[a & 7] = b; use(c);

#define EACH(k, m) \
	FUNCTION(plain, k, m, , return SUM;) \
	FUNCTION(jumps, k, m, , return leaf(SUM);) \
	FUNCTION(early, k, m, if (a < 3) return b;, if (b == 7) return leaf(a) + SUM; if (b == 8) return real(d) + SUM; return leaf(SUM) + 1;) \
	FUNCTION(small, k, m, ARRAY(40), use(c); return SUM;) \
	FUNCTION(medium, k, m, ARRAY(600), use(c); return SUM;) \
	FUNCTION(large, k, m, ARRAY(4096), use(c); return SUM;) \
	FUNCTION(huge, k, m, ARRAY(70000), use(c); return SUM;) \
	FUNCTION(dynamic, k, m, char *c = __builtin_alloca(a); use(c);, for (long i = 0; i < b; i++) use(c + i); return SUM;) \
	FUNCTION(dies, k, m, , if (b == 9) fails(SUM); if (b == 10) return SUM; fails(a); return 0;) \
	N long variadic_##k##_##m(long a, ...) { \
		va_list l; \
		__builtin_va_start(l, a); \
		long b = __builtin_va_arg(l, long); \
		double d = __builtin_va_arg(l, double); \
		BODY(k, m) return SUM + b; \
	}
#define SOME(k) EACH(k, 0) EACH(k, 1) EACH(k, 2)
SOME(0) SOME(1) SOME(2) SOME(3) SOME(4) EACH(5, 3) EACH(6, 4) EACH(7, 5) EACH(8, 6) EACH(9, 7) EACH(10, 8) EACH(11, 9) EACH(12, 0)

long start(void) { return sink; }
