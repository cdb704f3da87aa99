/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of every shape that Clang's compact unwind encodings have, or have not: see dwarf_test.go. */
typedef __builtin_va_list list;
typedef double v2 __attribute__((vector_size(16)));
#define noinline __attribute__((noinline))

extern int other(int), bytes(void *), eight(int, int, int, int, int, int, int, int, int, int), print(const char *, ...);
extern double real(double);
extern int jump(void *) __attribute__((returns_twice));
extern void stop(int) __attribute__((noreturn));
volatile int sink;
volatile double realSink;

noinline int leaf(int a) { return a * 3; }
noinline int global(int a) { return a * 3 + sink; }
noinline int leafFrame(int a) { volatile int b[20]; for (int i = 0; i < 20; i++) b[i] = a; return b[a & 15]; }
noinline int leafLarge(int a) { volatile int b[2000]; for (int i = 0; i < 2000; i++) b[i] = a; return b[a & 1023]; }
noinline int leafHuge(int a) { volatile int b[200000]; for (int i = 0; i < 200000; i++) b[i] = a; return b[a & 1023]; }
noinline int tail(int a) { sink = a; return other(a + 1); }
noinline int calls(int a) { return other(a) + 1; }
noinline int small(int a) { char b[40]; return bytes(b) + a; }
noinline int large(int a) { char b[1000]; return bytes(b) + a; }
noinline int larger(int a) { char b[3000]; return bytes(b) + a; }
noinline int page(int a) { char b[5000]; return bytes(b) + a; }
noinline int huge(int a) { char b[100000]; return bytes(b) + a; }
noinline int enormous(int a) { char b[0x1000000]; return bytes(b) + a; }
noinline int dynamic(int n) { char *b = __builtin_alloca(n); return bytes(b) + other(n); }
noinline int array(int n) { int s = 0; for (int i = 1; i < n; i++) { int b[i]; b[0] = i; s += bytes(b); } return s; }
noinline int aligned(int a) { _Alignas(64) char b[128]; return bytes(b) + a; }
noinline int one(int a) { return other(a) + a; }
noinline int two(int a, int b) { return other(a) + a * other(b) + b; }
noinline int three(int a, int b, int c) { return other(a) + a * other(b) + b * other(c) + c + a; }
noinline int four(int a, int b, int c, int d) { int x = other(a), y = other(b), z = other(c); return other(d) * x * y * z + a + b + c; }
noinline int many(int a, int b, int c, int d, int e, int f) {
	int x = other(a), y = other(b), z = other(c), u = other(d), v = other(e), w = other(f), s = other(a + b), t = other(c + d);
	return x * y + z * u + v * w + s * t + other(x + y + z + u + v + w + s + t) + x + y + z + u + v + w + s + t;
}
noinline int manyAndFrame(int a, int b, int c, int d, int e, int f) {
	char m[600];
	int x = other(a), y = other(b), z = other(c), u = other(d), v = other(e), w = other(f), s = bytes(m), t = other(c + d);
	return x * y + z * u + v * w + s * t + other(x + y + z + u + v + w + s + t) + x + y + z + u + v + w + s + t;
}
noinline int manyAndPage(int a, int b, int c, int d, int e, int f) {
	char m[60000];
	int x = other(a), y = other(b), z = other(c), u = other(d), v = other(e), w = other(f), s = bytes(m), t = other(c + d);
	return x * y + z * u + v * w + s * t + other(x + y + z + u + v + w + s + t) + x + y + z + u + v + w + s + t;
}
noinline double reals(double a, double b) {
	double x = real(a), y = real(b), z = real(x), u = real(y), v = real(z), w = real(u), s = real(v), t = real(w);
	return x * y + z * u + v * w + s * t + real(x + y) + x + y + z + u + v + w + s + t;
}
noinline double twoReals(double a, double b) { return real(a) * b + a * real(b) + a; }
noinline double realsAndMany(double a, double b, int c, int d, int e) {
	double x = real(a), y = real(b), z = real(x);
	int u = other(c), v = other(d), w = other(e);
	return x * y * z + real(x + u) + x + y + z + u * other(v) + v + w;
}
noinline int pressure(const int *p, int n) {
	int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7], i = p[8], j = p[9], k = p[10], l = p[11], m = p[12], o = p[13];
	for (int q = 0; q < n; q++) { a += b ^ q; b += c; c ^= d; d += e; e ^= f; f += g; g ^= h; h += i; i ^= j; j += k; k ^= l; l += m; m ^= o; o += a; }
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ o;
}
noinline int pushes(int a) { return eight(a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7, a + 8, a + 9) + other(a); }
noinline int variadic(const char *f, ...) {
	list l;
	__builtin_va_start(l, f);
	int s = 0;
	while (*f) s += *f++ == 'i' ? __builtin_va_arg(l, int) : (int)__builtin_va_arg(l, double);
	__builtin_va_end(l);
	return s + other(s);
}
noinline int early(int a) {
	if (a < 3) return other(a);
	int b = other(a);
	if (b == 7) return bytes(&b);
	for (int i = 0; i < a; i++) { b += other(i); if (b > 1000) return small(b); }
	return b;
}
noinline int switches(int a) {
	int b = other(a), c = other(b);
	switch (a) {
	case 1: return small(b) + c;
	case 2: return b - early(c);
	case 3: return many(b, c, 1, 2, 3, 4);
	case 4: return bytes(&b);
	case 5: return c * dynamic(100 + b);
	case 6: return b ? other(c) : tail(c);
	case 7: stop(b);
	default: return tail(c);
	}
}
noinline void fail(int a) { print("%d\n", a); stop(a); }
noinline int stops(int a) { if (a > 4) fail(a); return other(a) + a; }
noinline int twice(int a) { char b[400]; if (jump(b)) return other(a); return a + bytes(b); }
noinline v2 vectors(v2 a, int n) { v2 *b = __builtin_alloca(16 * n), x = a * a; b[0] = x; bytes(b); return x + b[n / 2]; }
noinline int pointer(int (*f)(int), int a) { return f(a) + f(a + 1); }
noinline int jumpsThrough(int (*f)(int), int a) { return f(a); }
__attribute__((naked)) void bare(void) { __asm__("nop\n\tret"); }
int main(int n, char **v) {
	(void)v;
	return tail(n) + small(n) + large(n) + huge(n) + dynamic(n + 10) + many(1, 2, 3, 4, 5, 6) + early(n) + switches(n) > 3;
}
