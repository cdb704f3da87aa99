// Programs in which AddressSanitizer finds what is wrong.
#include <stdlib.h>

__attribute__((noinline)) int reader(int *p) { return *p; }
__attribute__((noinline)) int use(char *p) { return p[3]; }

int main(int argc, char **argv) {
  if (argv[1][0] == 'n') return reader(0);
  char *p = malloc(8);
  free(p);
  return use(p);
}
