// SPDX-License-Identifier: Apache-2.0
// C++ without its library: exceptions, destructors, virtual calls, thunks and lambdas; see dwarf_test.go.
extern "C" int other(int), bytes(void *), print(const char *, ...);

struct Error { int code; };
struct Late : Error { virtual ~Late() {} int more; };
struct Guard { int n; explicit Guard(int n) : n(n) { other(n); } ~Guard() { other(-n); } };
struct Base { virtual ~Base() {} virtual int f(int a) { return a; } };
struct Other { virtual ~Other() {} virtual int g(int a) { return a + 1; } int x = 3; };
struct Derived : Base, Other {
	int f(int a) override { Guard d(a); if (a > 3) throw Error{a}; return other(a) * 2; }
	int g(int a) override { Guard c(1), d(2); int s = x; for (int i = 0; i < a; i++) { Guard e(i); s += f(i); } return s; }
};
struct Virtual : virtual Base, virtual Other { int f(int a) override { return other(a) + x; } int g(int a) override { return f(a) + a; } };
__attribute__((noinline)) int caught(Base *b, Other *o, int n) {
	try { return b->f(n) + o->g(n); }
	catch (const Late &e) { print("%d\n", e.code); throw; }
	catch (const Error &e) { print("%d\n", e.code); return o->g(1); }
	catch (...) { return -1; }
}
__attribute__((noinline)) int nested(Base *b, int n) {
	int s = 0;
	for (int i = 0; i < n; i++) {
		char m[200];
		try { Guard g(i); s += bytes(m); try { s += b->f(i); } catch (Error &) { s += other(i); throw Late(); } }
		catch (Error &e) { s -= e.code; }
	}
	return s;
}
__attribute__((noinline)) int never(Base *b, int n) noexcept { return b->f(n) + b->f(n + 1); }
template <class F> __attribute__((noinline)) int apply(F f, int n) { int s = 0; for (int i = 0; i < n; i++) s += f(i); return s; }
__attribute__((noinline)) int lambdas(int n) { int k = other(n); Guard g(k); return apply([&](int i) { Guard h(i); return other(i * k); }, n) + k; }
int main(int n, char **) { Derived d; Virtual v; return caught(&d, &v, n) + nested(&d, n) + never(&v, n) + lambdas(n); }
