// SPDX-License-Identifier: Apache-2.0
// Functions of 32-bit x86 with every kind of frame: parameters that the callee pops, saved registers,
// a large frame, one that is aligned, and one of variable size.
volatile int sink;
int __attribute__((stdcall, noinline)) pops(int a, int b, int c) { sink = a + b; return c * sink; }
int __attribute__((fastcall, noinline)) fast(int a, int b, int c, int d) { sink = a + b; return c * sink + d; }
int __attribute__((noinline)) pushes(int a, int b, int c, int d) { return pops(a, b, c) + fast(a, b, c, d) + pops(d, c, b); }
int __attribute__((noinline)) saves(int a, int b, int c, int d) { int x = pops(a, b, c), y = fast(b, c, d, x), z = pushes(x, y, a, b); return x + y * z + pushes(z, y, x, d); }
int __attribute__((noinline)) large(int n) { volatile int list[3000]; for (int i = 0; i < n; i++) list[i] = saves(i, n, i, n); return list[n & 7] + pops(n, n, n); }
int __attribute__((noinline)) aligned(int n) { _Alignas(64) volatile int x[16]; x[n & 15] = pushes(n, 1, 2, 3); return x[3] + pops(1, 2, n); }
int __attribute__((noinline)) variable(int n) { volatile char *p = __builtin_alloca(n); p[0] = (char)pushes(n, 2, 3, 4); return p[0] + pops(n, 1, 2); }
int __attribute__((noinline)) recursive(int n) { return n < 2 ? pops(n, n, n) : recursive(n - 1) + recursive(n - 2) + saves(n, n, n, n); }
void __chkstk(void) {}
void ___chkstk_ms(void) {}
void _alloca(void) {}
int start(void) { return large(3) + aligned(4) + variable(5) + recursive(6); }
