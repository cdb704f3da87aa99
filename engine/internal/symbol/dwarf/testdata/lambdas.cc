// Lambdas, and a class, that g++ -O2 inlines where they are called. It describes them inside the
// definitions of the functions that they are written in, whose names are in declarations.
//
//	g++ -g -O2 -std=c++17 -c lambdas.cc
volatile int sink;

namespace ns {
int function(int n) {
	auto f = [&](int x) { sink = x + n; return x; };
	return f(n) + f(n + 1);
}
namespace {
int hidden(int n) {
	return [](int x) { auto g = [](int y) { sink = y; return y + 3; }; return g(x) + 1; }(n);
}
} // namespace
struct S {
	template <class T> T instance(T n);
	int method(int n) const;
};
int S::method(int n) const {
	struct Local {
		int own(int n) { sink = n * 5; return n + 5; }
	};
	auto f = [this](int x) { sink = x + 2; return x + 1; };
	return f(n) + Local().own(n);
}
} // namespace ns
static int own(int n) {
	auto f = [](int x) { sink = x + 7; return x + 1; };
	return f(n);
}
int call(int n) { return own(n) + ns::hidden(n) + ns::S().method(n) + ns::function(n); }
