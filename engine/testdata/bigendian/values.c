// Values of a big-endian machine: narrow ones in registers, in registers that a callee
// saved, and in memory; numbers of several formats.
typedef enum { RED, GREEN = 3 } color;
struct bits { unsigned a : 3, b : 11; signed c : 9; unsigned long long d : 40; color e : 4; };
struct small { unsigned char x; short y; };
struct all {
	struct bits bits;
	color k;
	float f;
	long double ld;
	_Complex double z;
	_Complex float zf;
	_Complex long double zl;
	short s[3];
	_Bool t;
	unsigned char uc;
	__int128 wide;
};
typedef float vector __attribute__((vector_size(16)));

void *memcpy(void *to, const void *from, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

__attribute__((noinline)) long crash(char ch, unsigned short us, short ss, _Bool t, float f, double x, color k, int *q)
{
	*(volatile int *)q = ch + us + ss + t + k + (f < x);
	return ch;
}

__attribute__((noinline)) int held(struct all *p, int *q)
{
	volatile struct all cp = *p;
	signed char ch = cp.s[0];
	unsigned short us = cp.s[1];
	color k = cp.k;
	float f = cp.f;
	int r = crash('z', 65535, -2, 1, 0.5f, 2.75, GREEN, q);
	r += ch + us + k + (int)f + cp.s[2]; // all are alive behind the call
	return r + crash(ch, us, ch, ch != 0, f, f, k, q) + ch + us + k + (int)f;
}

void _start(void)
{
	static struct all b = {
		.bits = {5, 1000, -100, 0x8912345678ULL, GREEN}, .k = GREEN, .f = -0.25f, .ld = -3.1L,
		.z = 1 + 2i, .zf = 3 + 4i, .zl = 5.5L + 6.25Li, .s = {-7, -2, 3}, .t = 1, .uc = 200, .wide = -5,
	};
	static volatile int done;
	done = held(&b, 0) + 1; // no tail call
}
