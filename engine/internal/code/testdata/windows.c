// A program without a library, for Windows. unwindcodes_test.go compiles it.
__declspec(noinline) int kept(int n) {
	volatile int a[9];
	a[n] = n;
	return a[n];
}

int start(void) { return kept(3); }
