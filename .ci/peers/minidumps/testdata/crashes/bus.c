// A read behind the end of a mapped file: SIGBUS.
#include <stdio.h>
#include <sys/mman.h>
static int last(const char *text, long n) { int sum = 0; for (long i = n - 1; i >= 0; i--) sum += text[i]; return sum; }
int main(void) { FILE *f = tmpfile(); char *m = mmap(0, 1 << 16, PROT_READ, MAP_SHARED, fileno(f), 0); return last(m, 1 << 16); }
