// SPDX-License-Identifier: Apache-2.0
volatile unsigned n;
__attribute__((noinline)) void leaf(int a) { for (unsigned i = 0; i < 1000000u * (unsigned)a; i++) n += i; }
__attribute__((noinline)) void middle(int a, int b) { leaf(a + b); n++; }
__attribute__((noinline)) void outer(int a) { middle(a, 2); middle(a, 3); n++; }
int main(void) { for (int i = 0; i < 40; i++) outer(1); return 0; }
