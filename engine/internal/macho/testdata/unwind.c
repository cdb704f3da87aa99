/* SPDX-License-Identifier: Apache-2.0 */
/* The source of unwind-arm64 and unwind-x86_64: see make.sh. */
#define noinline __attribute__((noinline))
volatile int sink;
noinline int other(int a) { sink = a; return sink; }
noinline int leaf(int a) { volatile int b[100]; for (int i = 0; i < 100; i++) b[i] = a; return b[a & 63]; }
noinline int large(int a) { volatile int b[2000]; for (int i = 0; i < 2000; i++) b[i] = other(i); return b[a & 1023] + other(a); }
noinline int dynamic(int n) { volatile char *b = __builtin_alloca(n); b[n - 1] = 3; return b[0] + other(n); }
noinline int many(int a, int b, int c, int d, int e, int f) {
	int x = other(a), y = other(b), z = other(c), u = other(d), v = other(e), w = other(f), s = other(a + b), t = other(c + d);
	return x * y + z * u + v * w + s * t + other(x + y + z + u + v + w + s + t) + x + y + z + u + v + w + s + t;
}
int main(int n, char **v) { (void)v; return leaf(n) + large(n) + dynamic(n + 10) + many(1, 2, 3, 4, 5, 6); }
