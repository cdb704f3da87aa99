// A library whose constructor meets an instruction that is none.
__attribute__((noinline)) static void begin(int n) { if (n) __builtin_trap(); }
__attribute__((constructor)) static void made(void) { begin(1); asm volatile(""); }
