// Functions that compilers inline, cut, clone and fold; templates, lambdas and local names.
#include <algorithm>
#include <string>
#include <vector>

struct Shape {
	std::string name;
	int sides;
	virtual ~Shape() = default;
	virtual int area(int scale) const { return sides * scale; }
};

struct Square : Shape {
	int area(int scale) const override { return sides * scale * scale; }
};

int folded_one(int a) { return a * 3 + 1; }
int folded_two(int a) { return a * 3 + 1; }

namespace {
template <typename T> __attribute__((noinline)) int sum(const std::vector<T *> &all, int scale) {
	int total = 0;
	std::for_each(all.begin(), all.end(), [&](const T *s) {
		if (s->name.empty())
			throw s->sides;
		total += s->area(scale);
	});
	return total;
}

__attribute__((noinline)) int pick(int n, int scale) {
	if (n > 100)
		abort();
	return n + scale / 2;
}
} // namespace

int main(int argc, char **argv) {
	std::vector<Shape *> all;
	for (int i = 0; i < argc * 3; i++) {
		all.push_back(i % 2 ? new Shape : new Square);
		all.back()->name = std::string(argv[0]) + std::to_string(i);
		all.back()->sides = folded_one(i) + folded_two(i);
	}
	int (*volatile choose)(int) = argc > 2 ? folded_one : folded_two;
	try {
		return pick(sum(all, argc) % 7, argc) + choose(argc);
	} catch (int n) {
		return pick(n, 2);
	}
}
