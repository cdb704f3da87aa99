/* The library of plugged.c. Built with -O2 -g -shared -fPIC. */
__attribute__((noinline)) int inner(int (*f)(void))
{
	volatile char b[100];
	b[3] = f();
	return b[3] + 1;
}

int plug(int (*f)(void)) { return inner(f) + 1; }
