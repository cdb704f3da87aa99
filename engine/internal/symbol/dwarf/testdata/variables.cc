// Variables of static storage and of frames, in the ways that C++ has them.
#include <cstdio>

int plain = 3;
static int hidden[10] = {1}, second_hidden;
const char *text = "abc";
namespace space {
int inside[4] = {1};
namespace { double anonymous = 2; }
}
struct Pair {
	static int member[3];
	int a;
	char b;
	void method() {}
};
int Pair::member[3] = {1, 2, 3};
Pair value, &reference = value;
int Pair::*pointer_to_member = &Pair::a;
void (Pair::*pointer_to_method)() = &Pair::method;
volatile const int qualified = 4;
extern "C" { int with_c_linkage = 7; }
typedef struct { int x[2][3]; } Matrix;
Matrix matrix = {{{1}}};
template <class A> A of_template = A(5);
thread_local int of_thread = 4;

inline int inlined(int *p, int n) {
	int local[3] = {n, n, n};
	static int kept = 3;
	for (int i = 0; i < n; i++) {
		int q = i * kept;
		p[i] += q + local[i % 3];
	}
	return p[0];
}

__attribute__((noinline)) int outer(int n, char c) {
	int array[10] = {n};
	int z = n;
	auto lambda = [&](int q) { int w = q; return w + n; };
	struct Inner {
		int twice(int by) { return by * 2; }
	} inner;
	{
		int in_block = inlined(array, n);
		z += in_block + lambda(n) + inner.twice(n);
	}
	static int count;
	count++;
	printf("%p %d %d", (void *)array, z, c);
	return array[n] + z + count + (int)space::anonymous + hidden[n] + second_hidden;
}

int main(int argc, char **) {
	int (*function)(int, char) = outer;
	return function(argc, 'c') + of_template<int> + (int)of_template<long> + of_thread + *text;
}
