/* A program without a C library that crashes two calls deep. */
__attribute__((noinline)) void crash_here(volatile int *p) { *p = 42; }
__attribute__((noinline)) void middle(long n) { crash_here((int *)n); __asm__ volatile(""); }
void _start(void) { middle(16); for (;;) ; }
