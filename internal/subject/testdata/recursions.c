// A crash in recursions: of two functions, of one with an inlined call, and one in another.
// gcc -g -O0 recursions.c -o recursions
int even(int n);
int odd(int n)
{
	if (n <= 0)
		*(volatile int *)0 = 1;
	return even(n - 1) + 1;
}
int even(int n)
{
	return odd(n - 1) + 1;
}
int twice(int n);
static inline __attribute__((always_inline)) int between(int n)
{
	return twice(n - 1) + 1;
}
int twice(int n)
{
	if (n <= 0)
		return odd(80);
	return between(n) + 1;
}
int outer(int n);
int inner(int n, int left)
{
	return n > 0 ? inner(n - 1, left) + 1 : outer(left - 1) + 1;
}
int outer(int n)
{
	return n > 0 ? inner(20, n) + 1 : twice(60) + 1;
}
int main(void)
{
	return outer(8);
}
