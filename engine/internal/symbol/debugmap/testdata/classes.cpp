// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"
namespace scope {
struct Base { virtual ~Base(); virtual int f(int a); int member = 1; static int number; };
int Base::number = 11;
Base::~Base() { outside(member); }
int Base::f(int a) { int b = outside(a + member); return b + number; }
namespace { struct Derived : Base { Point at = {1, 2, 3}; int f(int a) override { Box<int> box = {a}; return box.twice(at.x) + Base::f(a); } }; Derived one; }
}
template <int *P> __attribute__((noinline)) int through(int a) { int v = *P; *P = a; return outside(v); }
template <int (*F)(int)> __attribute__((noinline)) int calling(int a) { int r = F(a); return outside(r) + r; }
static int target = 5;
static __attribute__((noinline)) int helper(int a) { auto twice = [&](int b) { int c = a + b; return outside(c); }; return twice(a) + 1; }
int same(int a) { int b = outside(a); return b * 3; }
__attribute__((noinline)) int known(Hidden *h, int a) { Hidden *copy = h; return outside(a + (copy != nullptr)); }
extern "C" int start(int n) {
	scope::Base *b = &scope::one;
	Box<double> real = {1.5};
	int result = b->f(n) + shared(n) + helper(n) + through<&target>(n) + calling<helper>(n) + (int)real.twice(2) + known(hidden, n);
	try { result += outside(n); } catch (int code) { result = code; }
	return result + same(n);
}
int main(int argc, char **) { return start(argc); }
