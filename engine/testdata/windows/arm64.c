/* A program for Windows on arm64 that arm64run.c runs: functions of several shapes call each other, and
 * the last one calls what it was handed. Each notes where it returns to. */
#define N __attribute__((noinline))
typedef __builtin_va_list va_list;
__declspec(dllexport) void *returns[16];
static void (*last)(void);
volatile long sink;
volatile double real;
__asm__(".globl __chkstk\n__chkstk: ret");
#define NOTE(n) returns[n] = __builtin_return_address(0)

N long leaf(long a) { return a * 3 + sink; }
N double half(double a) { return a / 2 + real; }
N void use(void *p) { sink += *(volatile char *)p; }
N long bottom(long a) { NOTE(0); long b = leaf(a); last(); return b + leaf(a); }
N long reals(double d, long a) {
	NOTE(1);
	double x = half(d), y = half(x), z = half(y), u = half(z), v = half(u);
	long b = bottom(a);
	return b + (long)(x * y + z * u * v);
}
N long variadic(long n, ...) {
	va_list l;
	NOTE(2);
	__builtin_va_start(l, n);
	double d = __builtin_va_arg(l, double);
	long a = __builtin_va_arg(l, long), b = leaf(a);
	return reals(d, a + b) + b;
}
N long many(long a) {
	NOTE(3);
	long b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e), g = leaf(f), h = leaf(g), i = leaf(h), j = leaf(i), k = leaf(j);
	return variadic(3, 2.0, a) + b * c + d * e + f * g + h * i + j * k;
}
N long dynamic(long n) {
	NOTE(4);
	char *b = __builtin_alloca(n), *c;
	use(b);
	c = __builtin_alloca(n + 32);
	use(c);
	return many(n) + b[0] + c[1];
}
/* It does not note: clang reads lr behind the call of __chkstk. */
N long large(long n) { char b[20000]; b[n] = n; use(b); long r = dynamic(n + 100); use(b); return r + b[n]; }
N long medium(long n) { NOTE(6); char b[600]; b[n] = n; use(b); long r = large(n); use(b); return r; }
N long early(long n) { NOTE(7); if (n == 7) return leaf(n); long r = medium(n); if (r == 7) return leaf(n) + 1; return leaf(r) + n; }
__declspec(dllexport) long start(void (*f)(void)) { NOTE(8); last = f; return early(3) + 1; }
