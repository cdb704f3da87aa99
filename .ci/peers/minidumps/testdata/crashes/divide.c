// A division by zero in a function that is called in its caller's tail.
__attribute__((noinline)) static int divide(int a, int b) { return a / b; }
__attribute__((noinline)) static int tail(int a, int b) { return divide(a + 1, b); }
__attribute__((noinline)) static int head(int a, int b) { int r = tail(b, a - 1); asm volatile(""); return r + 1; }
int main(int argc, char **argv) { (void)argv; return head(argc, 2) + 1; }
