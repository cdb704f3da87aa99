// A crash in calls that are inlined several deep, in a lambda that a template calls.
#include <algorithm>
#include <functional>
#include <vector>
struct Shape {
	int *sides;
	inline int area(int n) const { return sides[n] * n; }
};
template <class T> static inline int sum(const std::vector<T> &v, int n) {
	int total = 0;
	std::for_each(v.begin(), v.end(), [&](const T &s) { total += s.area(n); });
	return total;
}
__attribute__((noinline)) static int twice(const std::function<int(int)> &f) { return f(1) + f(2); }
int main(int argc, char **) {
	std::vector<Shape> v(argc);
	return twice([&](int n) { return sum(v, n); });
}
