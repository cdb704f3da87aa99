// A failed assertion.
#include <assert.h>
static void check(int n) { assert(n > 5); }
int main(int argc, char **argv) { (void)argv; check(argc); return 0; }
