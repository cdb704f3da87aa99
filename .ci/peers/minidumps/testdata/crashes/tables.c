// Functions that have neither frame pointers nor, in this file, call frame information.
#include <string.h>
__attribute__((noinline)) static long third(long *p, long n) { char room[300]; memset(room, (int)n, sizeof room); asm volatile("" : : "r"(room)); return *p + room[n]; }
__attribute__((noinline)) static long second(long *p, long n) { long a = third(p, n) * n; asm volatile(""); return a + 1; }
__attribute__((noinline)) long first(long *p, long n) { long a = second(p, n + 1) - n; asm volatile(""); return a; }
