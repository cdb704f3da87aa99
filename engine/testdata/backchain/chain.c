// Functions without call frame information, whose frames form a chain. entry is called in
// middle through a pointer, so that a compiler for POWER restores the TOC pointer behind it. On ppc64 the entry point calls
// outer itself; elsewhere it goes on to begin, with which the chain ends.
int crash(int n);

#if defined __powerpc__ && _CALL_ELF == 2
__asm__(".globl _start; _start: b begin; .space 80; .type begin,@function; begin: lis 2,.TOC.@ha; addi 2,2,.TOC.@l; li 0,0; stdu 1,-64(1); std 0,0(1); bl outer; nop; trap; .size begin,.-begin");
#elif defined __powerpc__
__asm__(".section \".opd\",\"aw\"; .align 3; .globl _start; _start: .quad .L_start,.TOC.@tocbase,0; .previous; .type _start,@function;"
        ".L_start: li 0,0; stdu 1,-112(1); std 0,0(1); bl outer; nop; trap; .size _start,.-.L_start");
#else
__asm__(".globl _start; _start: jg begin; .space 80; .type begin,@function; begin: lay %r15,-160(%r15); xc 0(8,%r15),0(%r15); brasl %r14,outer; .word 0; .size begin,.-begin");
#endif

__attribute__((noinline)) int entry(int n) {
  volatile char here[40];
  here[n] = 1;
  return crash(n + 1) + here[n];
}

__attribute__((noinline)) int middle(int (*f)(int), int n) {
  volatile long there[20];
  there[n] = n;
  return f(n + 1) + (int)there[n];
}

__attribute__((noinline)) int outer(void) { return middle(entry, 3) + 1; }
