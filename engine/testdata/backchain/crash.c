// The one function with call frame information: it destroys the register that its callers'
// calls restore, and traps.
__attribute__((noinline)) int crash(int n) {
#ifdef __powerpc__
  __asm__ volatile("mr 10,2; li 2,0x123; trap" : : "r"(n));
#else
  __asm__ volatile(".word 0" : : "r"(n));
#endif
  return n;
}
