// Programs without symbols that crash in a function that the C library called.
#include <stdlib.h>
#include <string.h>

static volatile int *null;

__attribute__((noinline)) static int deep(int n) { return n == 0 ? *null : deep(n - 1) + n; }
static int compare(const void *a, const void *b) { return deep(2) + *(const int *)a - *(const int *)b; }
static int stop(const void *a, const void *b) { abort(); }

int main(int argc, char **argv) {
  int list[4] = {4, 3, 2, 1};
  qsort(list, 4, 4, strcmp(argv[1], "abort") ? compare : stop);
  return list[0];
}
