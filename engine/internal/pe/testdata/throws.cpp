// C++: exceptions, destructors, virtual calls and thunks: see dwarf_test.go.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Base { virtual ~Base() {} virtual int f(int a) { return a; } };
struct Other { virtual ~Other() {} virtual int g(int a) { return a + 1; } int x = 3; };
struct Guard { std::string s; explicit Guard(const char *c) : s(c) {} ~Guard() { std::puts(s.c_str()); } };
struct Derived : Base, Other {
	int f(int a) override { Guard d("f"); if (a > 3) throw std::runtime_error("f"); return a * 2; }
	int g(int a) override { std::vector<int> v(a, x); int s = 0; for (int i : v) s += f(i); return s; }
};
__attribute__((noinline)) int caught(Base *b, Other *o, int n) {
	try { return b->f(n) + o->g(n); }
	catch (const std::runtime_error &e) { std::printf("%s\n", e.what()); return o->g(1); }
	catch (...) { return -1; }
}
__attribute__((noinline)) int words(int n) {
	std::map<std::string, int> m;
	for (int i = 0; i < n; i++) m["w" + std::to_string(i % 7)] += i;
	int s = 0;
	for (auto &p : m) s += p.second * (int)p.first.size();
	return s;
}
int main(int n, char **) { Derived d; return caught(&d, &d, n) + words(n * 10); }
