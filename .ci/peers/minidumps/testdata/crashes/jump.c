// A call through a null pointer to a function.
#include <stddef.h>
struct ops { int (*open)(int); int (*close)(int); };
static struct ops ops;
__attribute__((noinline)) static int shut(struct ops *o, int n) { int r = o->close(n); asm volatile(""); return r + 1; }
int main(int argc, char **argv) { (void)argv; return shut(&ops, argc) + 1; }
