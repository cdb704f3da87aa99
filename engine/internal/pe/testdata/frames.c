/* Frames of every shape that MinGW's compiler makes: see dwarf_test.go. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <malloc.h>

volatile int sink;
int scratch;
typedef double v2 __attribute__((vector_size(16)));

__attribute__((noinline)) void use(void *p) { sink += *(volatile char *)p; }
__attribute__((noinline)) int leaf(int a) { return a * 3 + sink; }
__attribute__((noinline)) int tail(int a) { use(&a); return leaf(a + 1); }
__attribute__((noinline)) int small(int a) { char b[40]; memset(b, a, sizeof b); use(b); return b[3]; }
__attribute__((noinline)) int large(int a) { char b[100000]; memset(b, a, sizeof b); use(b); return b[a]; }
__attribute__((noinline)) int huge(int a) { char b[700000]; memset(b, a, sizeof b); use(b); return b[a]; }
__attribute__((noinline)) int dynamic(int n) { char *b = alloca(n); memset(b, n, n); use(b); return b[n / 2] + leaf(n); }
__attribute__((noinline)) int vla(int n) {
	int s = 0;
	for (int i = 1; i < n; i++) { int b[i]; b[0] = i; use(b); s += b[0]; }
	return s;
}
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h) {
	int x = leaf(a), y = leaf(b), z = leaf(c), u = leaf(d), v = leaf(e), w = leaf(f), s = leaf(g), t = leaf(h);
	return x * y + z * u + v * w + s * t + leaf(x + y + z + u + v + w + s + t);
}
__attribute__((noinline)) double vectors(double a, double b) {
	double x = a * b, y = a + b, z = a - b, u = a / b, v = x * y, w = y * z, s = z * u, t = x / w, p = v + s, q = t - p;
	use(&scratch);
	double r = x + y * z - u + v * w - s * t + p * q;
	use(&scratch);
	return r + x + y + z + u + v + w + s + t + p + q;
}
__attribute__((noinline)) v2 vectorsAndFrame(v2 a, int n) {
	v2 *b = alloca(16 * n), x = a * a, y = a + x, z = x - y;
	for (int i = 0; i < n; i++) b[i] = x * y + z;
	use(b);
	return x + y + z + b[n / 2];
}
__attribute__((noinline)) int variadic(const char *f, ...) {
	va_list l;
	va_start(l, f);
	int s = 0;
	while (*f) s += *f++ == 'i' ? va_arg(l, int) : (int)va_arg(l, double);
	va_end(l);
	return s + leaf(s);
}
__attribute__((noinline)) int early(int a) {
	if (a < 3) return leaf(a);
	int b = leaf(a);
	if (b == 7) { use(&b); return b; }
	for (int i = 0; i < a; i++) { b += leaf(i); if (b > 1000) return small(b); }
	return b;
}
__attribute__((noinline)) int switches(int a) {
	int b = leaf(a), c = leaf(b);
	switch (a) {
	case 1: return small(b) + c;
	case 2: return b - early(c);
	case 3: return many(b, c, 1, 2, 3, 4, 5, 6);
	case 4: use(&b); return b;
	case 5: return c * dynamic(100 + b);
	case 6: return b ? leaf(c) : tail(c);
	default: return tail(c);
	}
}
__attribute__((noinline, cold)) void fail(int a) { printf("%d\n", a); exit(a); }
__attribute__((noinline)) int coldPart(int a) {
	int b = leaf(a), c = leaf(b);
	if (__builtin_expect(b == 12345, 0)) { use(&c); printf("rare %d\n", c); fail(b + c); }
	if (__builtin_expect(c == 54321, 0)) { use(&b); printf("rare %d\n", b); c = leaf(c); c += leaf(c * b); }
	return b * c + leaf(b + c);
}
__attribute__((noinline)) int (*pointer(int a))(int) { return a ? leaf : tail; }
__attribute__((noinline)) int throughPointer(int a) { char b[64]; memset(b, a, 64); use(b); return pointer(a)(a); }
__attribute__((noinline)) int aligned(int a) { _Alignas(64) char b[128]; memset(b, a, sizeof b); use(b); return b[5]; }
jmp_buf where;
__attribute__((noinline)) int jumps(int a) { if (setjmp(where)) return leaf(a); if (a > 5) longjmp(where, 1); return a; }
int main(int n, char **v) {
	(void)v;
	return tail(n) + small(n) + large(n) + huge(n) + dynamic(n + 10) + vla(n + 5) + many(1, 2, 3, 4, 5, 6, 7, n) +
		(int)vectors(n, 2) + (int)vectorsAndFrame((v2){1, 2}, n + 3)[0] + variadic("idi", n, 2.0, 3) + early(n) +
		switches(n) + coldPart(n) + throughPointer(n) + aligned(n) + jumps(n) > 3;
}
