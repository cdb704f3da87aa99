// A process with N frames of one function, which aborts: deep N.
#include <stdlib.h>

__attribute__((noinline)) int down(int n) {
  if (n <= 1) abort();
  return down(n - 1) + 1;
}

int main(int argc, char **argv) { return down(argc > 1 ? atoi(argv[1]) : 1); }
