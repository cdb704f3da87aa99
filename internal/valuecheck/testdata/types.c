// Every type that C has, in frames of calls, inlined and not, and a fault at the end.
#include <complex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define keep(x) ({ __asm__ volatile("" : : "g"(&(x)) : "memory"); })
#define INLINE static inline __attribute__((always_inline))
#define CALL __attribute__((noinline, noclone))

enum color { RED, GREEN = 5, BLUE = -7 };
enum flags { READ = 1, WRITE = 2, EXECUTE = 4, APPEND = 64 };
enum wide { LOW = 1, HIGH = 0x7fffffffffffffffLL };
enum { NAMELESS_ONE = 1, NAMELESS_TWO };

struct incomplete;
typedef int (*operation)(int, const char *);
typedef struct point { short x, y; } point;

struct bits {
	unsigned a : 1, b : 3;
	int c : 5;
	unsigned long long d : 33;
	signed char e : 2;
	_Bool f : 1;
	enum flags g : 7;
	int : 0;
	int h : 31;
};
struct __attribute__((packed)) straddling {
	char before;
	unsigned a : 7;
	int b : 18;
	unsigned long long c : 40;
	short after;
};
union number { int i; float f; unsigned char bytes[8]; double d; };
struct anonymous {
	int tag;
	union {
		int whole;
		struct { short low, high; };
		float real;
	};
	struct { char inner[3]; } named;
};
struct flexible { int count; struct point points[]; };
struct list { int value; struct list *next; };
struct node { struct node *left, *right; const char *name; double weight; };

int global_number = 42;
const char *global_text = "a text that is global";
static point file_static = {3, -4};
point global_points[2][3] = {{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
_Thread_local int thread_number = 77;
static _Thread_local point thread_point = {8, 9};
extern struct incomplete *nowhere;
struct incomplete *nowhere;
volatile int sink;
int *volatile null_pointer;

int apply_add(int a, const char *b) { return a + b[0]; }

CALL int fault(int depth, point at, const char *reason) {
	point local = {(short)(at.x + depth), (short)(at.y - depth)};
	keep(local);
	*null_pointer = local.x + reason[0];
	return local.y;
}

INLINE int third(int c, point p) {
	int in_third = c * 2 + sink;
	return fault(in_third, p, "third") + in_third;
}

INLINE int second(int b, const char *text) {
	int in_second = b + 1;
	point p = {(short)in_second, 9};
	for (int i = 0; i < 2; i++) {
		int in_loop = i * 3 + in_second;
		if (third(in_loop, p) == sink)
			return in_loop;
	}
	return in_second + text[0];
}

CALL int inlines(int a, long unused) {
	int in_first = a + 100;
	return second(in_first, "second") + in_first + a;
}

CALL int registers(int a, unsigned long b, double c, float d, char e, point f, struct node *g) {
	long sum = a + (long)b;
	double product = c * d;
	int squares = a * a, constant = 1234;
	const char *name = g->name;
	int r = inlines(a + e, sum);
	sink = r + squares + constant;
	return (int)(sum + product + f.x + f.y + name[0] + squares);
}

// Blocks inside blocks, in which names are hidden.
CALL int shadows(int x, int y) {
	static int calls = 6;
	static const char *const names[] = {"one", "two", 0};
	calls++;
	int sum = x;
	keep(sum);
	{
		long x = 1000 + y;
		keep(x);
		{
			const char *x = "innermost";
			keep(x);
			double sum = 2.5;
			keep(sum);
			struct node leaf = {0, 0, "leaf", 1.5}, root = {&leaf, 0, "root", -0.0};
			keep(leaf);
			keep(root);
			return registers(y, 0x123456789abcdefUL, 1.25, -3.5f, 'q', (point){11, -12}, &root) + names[0][0];
		}
	}
}

CALL int arrays(int n, int m) {
	int line[5] = {1, -2, 3, -4, 5};
	short grid[2][3][4];
	for (int i = 0; i < 24; i++)
		((short *)grid)[i] = (short)(i * 7 - 50);
	char text[16] = "embedded\0nuls\n\x01";
	char exact[4] = {'f', 'u', 'l', 'l'};
	unsigned char bytes[4] = {0, 127, 128, 255};
	signed char signs[3] = {-1, 0, 1};
	uint16_t wide16[3] = {u'a', 0x20ac, 0};
	const char *strings[3] = {"zero", "", "two with \"quotes\" and \\"};
	int lengthless[n], plane[n][m];
	for (int i = 0; i < n; i++) {
		lengthless[i] = i * i;
		for (int j = 0; j < m; j++)
			plane[i][j] = i * 10 - j;
	}
	int (*row)[4] = (int (*)[4])(void *)line;
	int many[1000];
	for (int i = 0; i < 1000; i++)
		many[i] = i ^ 0x55;
	int empty[0];
	struct flexible *flex = malloc(sizeof(struct flexible) + 3 * sizeof(point));
	*flex = (struct flexible){3};
	for (int i = 0; i < 3; i++)
		flex->points[i] = (point){(short)i, (short)-i};
	keep(line), keep(grid), keep(text), keep(exact), keep(bytes), keep(signs), keep(wide16), keep(strings);
	keep(lengthless), keep(plane), keep(row), keep(many), keep(empty), keep(flex);
	return shadows(n, m) + line[0];
}

CALL int pointers(int (*function)(int, const char *), void *anything) {
	operation op = apply_add, none = 0;
	operation table[2] = {apply_add, 0};
	struct incomplete *opaque = nowhere;
	struct incomplete *nonsense = (struct incomplete *)0xdead0000beef;
	struct list second_item = {2, 0}, first_item = {1, &second_item};
	second_item.next = &first_item;
	int number = 17, *to_number = &number, **to_pointer = &to_number;
	const char *text = global_text, *null_text = 0, *bad_text = (const char *)8;
	char *restrict r = (char *)text;
	const volatile int cv = -3;
	const int *const constants = &number;
	int *to_global = &global_number, *inside = &((int *)global_points)[3];
	char *end = (char *)text + 21;
	_Atomic int counted = 5;
	_Atomic(struct list *) atomic_pointer = &first_item;
	ptrdiff_t distance = end - text;
	keep(op), keep(none), keep(table), keep(opaque), keep(nonsense), keep(second_item), keep(first_item), keep(number);
	keep(to_number), keep(to_pointer), keep(text), keep(null_text), keep(bad_text), keep(r), keep(cv), keep(constants);
	keep(to_global), keep(inside), keep(end), keep(counted), keep(atomic_pointer), keep(distance), keep(anything), keep(function);
	return arrays(3, 4) + (int)distance;
}

CALL int aggregates(struct bits by_value, union number u, struct anonymous *where) {
	struct bits bits = {1, 5, -9, 0x1ffffffffULL, -2, 1, READ | APPEND, -123456};
	struct straddling packed = {'b', 100, -100000, 0xabcdef1234ULL, -2};
	struct anonymous whole = {1, {.whole = 0x00070005}, {"in"}};
	union number other = {.d = -1.0 / 3};
	struct { int a; struct { double b; } c; } nameless = {4, {5.5}};
	struct empty {} empty;
	struct node here = {&here, 0, "self", 1e300};
	keep(bits), keep(packed), keep(whole), keep(other), keep(nameless), keep(empty), keep(here);
	return pointers(apply_add, &whole) + (int)by_value.d + u.i + where->tag;
}

CALL int scalars(void) {
	bool yes = true, no = false;
	char c = 'c', newline = '\n', high = (char)0xe9;
	signed char sc = -128;
	unsigned char uc = 200;
	short s = -32768;
	unsigned short us = 65535;
	int i = -2147483647 - 1;
	unsigned u = 4294967295u;
	long l = -9223372036854775807L - 1;
	unsigned long ul = 18446744073709551615ul;
	long long ll = 123456789012345;
	__int128 big = ((__int128)1 << 100) - 1, negative = -((__int128)1 << 90);
	unsigned __int128 ubig = ~(unsigned __int128)0;
	float f = 3.14159274f, tiny = 1e-45f, finf = __builtin_inff(), f0 = -0.0f;
	double d = 2.718281828459045, dinf = -__builtin_inf(), dnan = __builtin_nan("0x123"), large = 1.7976931348623157e308, third = 1.0 / 3;
	long double ld = 3.14159265358979323846264338327950288L, lbig = 1e4000L, lneg = -1.5L;
	float _Complex cf = 1.5f - 2.5fi;
	double _Complex cd = -0.5 + 1e10i;
	long double _Complex cl = 1.0L + 2.0Li;
	enum color red = RED, green = GREEN, blue = BLUE, unknown = (enum color)99;
	enum flags none = (enum flags)0, one = WRITE, some = READ | EXECUTE, more = (enum flags)(READ | 32), only_unknown = (enum flags)128;
	enum wide wide = HIGH;
	int nameless = NAMELESS_TWO;
	wchar_t wide_char = L'\u20ac';
	int8_t i8 = -5;
	uint8_t u8 = 65;
	size_t size = sizeof(struct bits);
	typedef int __attribute__((vector_size(16))) int4;
	typedef float __attribute__((vector_size(32))) float8;
	typedef unsigned char __attribute__((vector_size(8))) byte8;
	int4 vi = {1, -2, 3, -4};
	float8 vf = {0.5f, 1, 2, 3, 4, 5, 6, 7.5f};
	byte8 vb = {1, 2, 3, 4, 5, 6, 7, 8};
	keep(yes), keep(no), keep(c), keep(newline), keep(high), keep(sc), keep(uc), keep(s), keep(us), keep(i), keep(u), keep(l), keep(ul), keep(ll);
	keep(big), keep(negative), keep(ubig), keep(f), keep(tiny), keep(finf), keep(f0), keep(d), keep(dinf), keep(dnan), keep(large), keep(third);
	keep(ld), keep(lbig), keep(lneg), keep(cf), keep(cd), keep(cl), keep(red), keep(green), keep(blue), keep(unknown), keep(none), keep(one);
	keep(some), keep(more), keep(only_unknown), keep(wide), keep(nameless), keep(wide_char), keep(i8), keep(u8), keep(size), keep(vi), keep(vf), keep(vb);
	struct anonymous where = {7, {.real = 1.0f}, {"ab"}};
	return aggregates((struct bits){1, 2, 3, 4, 1, 0, EXECUTE, 7}, (union number){.f = -2.5f}, &where) + c;
}

int main(int argc, char **argv) {
	thread_number += argc;
	thread_point.x = (short)argc;
	keep(thread_point), keep(file_static);
	return scalars();
}
