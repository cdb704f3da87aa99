// Cgosubject is a Go program that crashes in C, called by Go, which C's qsort called,
// which Go called, and so on.
package main

/*
#include <stdlib.h>

extern int compareInGo(int depth);

static int compare(const void *a, const void *b) { return compareInGo(*(const int *)b); }

static void sortInC(int depth) {
	int numbers[4] = {depth, depth, depth, depth};
	qsort(numbers, 4, sizeof *numbers, compare);
}

static void fail(void) { *(volatile int *)0 = 1; }
*/
import "C"

//export compareInGo
func compareInGo(depth C.int) C.int {
	if depth == 0 {
		C.fail()
	}
	C.sortInC(depth - 1)
	return 0
}

func main() { C.sortInC(4) }
