// C++ whose functions have several exits, landing pads and cold parts. The tests
// compile this file themselves.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
	virtual ~Shape() {}
	virtual double area(int depth) const = 0;
};

struct Square : Shape {
	double side;
	explicit Square(double s) : side(s) {
		if (s < 0)
			throw std::invalid_argument("side");
	}
	double area(int depth) const override { return depth > 0 ? area(depth - 1) + side * side : side * side; }
};

struct Group : Shape {
	std::vector<Shape *> parts;
	std::map<std::string, double> seen;
	~Group() override {
		for (Shape *p : parts)
			delete p;
	}
	double area(int depth) const override {
		double sum = 0;
		for (const Shape *p : parts)
			sum += p->area(depth);
		return sum;
	}
	__attribute__((noinline)) void add(const char *name, double side) {
		try {
			parts.push_back(new Square(side));
			seen[name] += side;
		} catch (const std::invalid_argument &e) {
			std::fprintf(stderr, "%s: %s\n", name, e.what());
			if (side < -100)
				throw;
		}
	}
};

int main(int argc, char **argv) {
	Group g;
	for (int i = 1; i < argc; i++)
		g.add(argv[i], std::atof(argv[i]));
	std::printf("%g\n", g.area(argc));
	return g.seen.size() > 3;
}
