// A crash in the comparison that libc's qsort calls, in one that its bsearch calls.
#include <stdlib.h>
static int depth;
static int compare(const void *a, const void *b) {
	if (depth == 3) return **(int *const *)a - **(int *const *)b;
	int key = 2, sorted[] = {1, 2, 3};
	depth++;
	if (depth == 3) { int *none[] = {0, 0, 0, 0}; qsort(none, 4, sizeof *none, compare); }
	return bsearch(&key, sorted, 3, sizeof key, compare) ? 1 : 0;
}
int main(void) { int key = 1, sorted[] = {1, 2, 3}; return bsearch(&key, sorted, 3, sizeof key, compare) ? 1 : 0; }
