// Values of variables, each given to probe with a number that names it: probe's
// registers at its first instruction have the truth about its caller's variable.
// The test compiles it for each processor, and executes it.

#define NOINLINE __attribute__((noinline))

NOINLINE void probe(int tag, uint low, uint high) { __asm__ volatile("; %0 %1 %2" ::"v"(tag), "v"(low), "v"(high)); }
NOINLINE int opaque(int x)
{
	__asm__ volatile("; %0" : "+v"(x));
	return x;
}

struct pair { int a; float b; };
struct one { int v; };
struct large { int words[24]; };
enum color { RED = 1, GREEN, BLUE = 7 };

#define INT(tag, x) probe(tag, (uint)(x), 0)
#define LONG(tag, x) probe(tag, (uint)(ulong)(x), (uint)((ulong)(x) >> 32))
#define FLOAT(tag, x) probe(tag, __builtin_bit_cast(uint, (float)(x)), 0)

NOINLINE struct large make(int n)
{
	struct large made;
	for (int i = 0; i < 24; i++)
		made.words[i] = i * n + opaque(i);
	INT(30, made.words[3]);
	INT(31, made.words[23]);
	return made;
}

NOINLINE int integers(int n, global int *out)
{
	int a = n * 3 + 1;
	long b = ((long)a << 33) - n;
	char c = (char)(n + 40);
	ushort d = (ushort)(n * 1000);
	bool e = n > 20;
	uint f = 0x80000000u + n;
	INT(1, a);
	LONG(2, b);
	INT(3, c);
	INT(4, d);
	INT(5, e);
	INT(6, f);
	LONG(7, out);
	INT(8, n);
	out[1] += a + c;
	int back = opaque(a) + d;
	INT(9, back);
	LONG(2, b);
	return a + (int)b + c + d + e + f + back + out[n & 7];
}

NOINLINE float others(int n, float4 v)
{
	float x = n * 0.5f;
	float y = x * x - 3;
	enum color color = n & 1 ? GREEN : BLUE;
	struct pair p = {n * 7, x + 1};
	struct one o = {n - 2};
	FLOAT(10, x);
	FLOAT(11, y);
	INT(12, color);
	INT(13, p.a);
	FLOAT(14, p.b);
	INT(15, o.v);
	FLOAT(16, v.x);
	FLOAT(17, v.w);
	float z = x + opaque(p.a);
	FLOAT(18, z);
	return x + y + color + p.a + p.b + o.v + v.x + v.w + z;
}

NOINLINE int memory(int n, global int *out, local int *shared)
{
	int words[8];
	for (int i = 0; i < 8; i++)
		words[i] = out[i] + n;
	int *at = &words[opaque(n) & 7];
	*at += 5;
	struct large l = make(n);
	INT(20, words[2]);
	INT(21, words[7]);
	INT(22, l.words[5]);
	LONG(23, shared);
	private int *own = &words[opaque(n) & 3];
	LONG(24, own);
	shared[n & 7] = words[1];
	return words[n & 7] + l.words[n & 15] + shared[1] + *own;
}

NOINLINE int down(int n, global int *out)
{
	int here = n * 11;
	if (n <= 0) {
		INT(40, here);
		return out[0];
	}
	int below = down(n - 1, out);
	INT(41, below);
	INT(40, here);
	return below + here;
}

static inline int twice(int inner)
{
	int doubled = inner * 2;
	INT(50, doubled);
	INT(51, inner);
	return doubled + opaque(inner);
}

static inline int larger(int first, int second)
{
	int best = first;
	if (second > first) {
		best = second * 2;
		INT(54, best);
	} else {
		INT(54, best);
	}
	return best + twice(best);
}

kernel void start(global int *out, int n, local int *shared)
{
	local int fixed[64];
	int id = __builtin_amdgcn_workitem_id_x();
	int uniform = n * 5;
	fixed[id] = id;
	__builtin_amdgcn_s_barrier();
	INT(67, fixed[3]);
	INT(60, id);
	INT(61, uniform);
	INT(62, n);
	LONG(63, out);
	int sum = integers(id, out);
	INT(64, sum);
	if (id & 1) {
		int odd = sum * 3;
		INT(65, odd);
		sum += twice(odd) + down(id & 3, out);
	} else {
		sum += larger(id, 31);
	}
	INT(64, sum);
	sum += (int)others(id - 30, (float4)(id, 1, sum, n)) + memory(id, out, shared);
	for (int left = id & 3; left > 0; left--) {
		INT(66, left);
		sum += opaque(left);
	}
	INT(64, sum);
	INT(60, id);
	out[id] = sum + fixed[(id + 1) & 63] + uniform;
}
