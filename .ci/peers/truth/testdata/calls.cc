// SPDX-License-Identifier: Apache-2.0

// Calls of every kind that C++ has, with exceptions through them.

#include <algorithm>
#include <alloca.h>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#define OWN __attribute__((noinline))

volatile int sink;

OWN int leaf(int a) { return a * 3 ^ sink; }

OWN int allocates(int n) {
	char *p = (char *)alloca(n);
	memset(p, n, n);
	int sum = 0;
	for (int i = 0; i < n; i += 7)
		sum += leaf(p[i]);
	return sum;
}

OWN int array(int n) {
	int a[n];
	for (int i = 0; i < n; i++)
		a[i] = leaf(i);
	std::sort(a, a + n, [](int x, int y) { return x > y; });
	return a[n / 2];
}

OWN double variadic(int n, ...) {
	va_list list;
	va_start(list, n);
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += va_arg(list, double);
	va_end(list);
	return sum;
}

OWN int aligned(int n) {
	alignas(64) volatile char bytes[128];
	bytes[n] = n;
	return leaf(bytes[n]) + allocates(n);
}

struct big {
	int words[100];
};

OWN big returnsBig(int n) {
	big b = {};
	b.words[n] = leaf(n);
	return b;
}

OWN int takesMany(int a, int b, int c, int d, int e, int f, int g, int h, big i) {
	return leaf(a + b + c + d + e + f + g + h + i.words[3]) + 1;
}

OWN int even(int n);
OWN int odd(int n) { return n == 0 ? 0 : even(n - 1); } // jumps
OWN int even(int n) { return n == 0 ? 1 : odd(n - 1); }

OWN int recursive(int n) { return n < 2 ? 1 : recursive(n - 1) + recursive(n - 2); }

struct base {
	virtual ~base() { sink++; }
	virtual int value(int n) = 0;
};
struct other {
	virtual int twice(int n) { return 2 * leaf(n); }
	int pad = 1;
};
struct derived : other, base {
	std::string text = "a text that is not short at all";
	int value(int n) override { return leaf(n) + (int)text.size(); }
	int twice(int n) override { return value(n) * 2; }
};

struct guard {
	const char *name;
	explicit guard(const char *n) : name(n) { sink++; }
	~guard() { sink = sink + (int)strlen(name); }
};

OWN int throws(int n) {
	guard g("throws");
	if (n == 0)
		throw std::runtime_error("at the end");
	return throws(n - 1) + aligned(5);
}

OWN int catches(int n) {
	try {
		guard g("catches");
		return throws(n);
	} catch (const std::logic_error &) {
		return 1;
	} catch (const std::exception &e) {
		return (int)strlen(e.what());
	}
}

OWN int rethrows(int n) {
	try {
		try {
			std::vector<guard> list(1, guard("list"));
			return throws(n);
		} catch (...) {
			guard g("rethrows");
			throw;
		}
	} catch (const std::runtime_error &) {
		return catches(1) + 1;
	}
}

OWN int library() {
	std::map<std::string, int> ordered;
	std::unordered_map<int, std::string> hashed;
	std::ostringstream out;
	for (int i = 0; i < 12; i++) {
		ordered[std::to_string(i * 7919 % 101)] = i;
		hashed[i] = std::string(i, 'x');
		out << i << ' ' << i * 1.5 << ' ' << std::hex << i << ';';
	}
	std::vector<std::string> words;
	for (auto &w : ordered)
		words.push_back(w.first + hashed[w.second]);
	std::stable_sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) { return a.size() < b.size(); });
	std::function<int(int)> f = [&](int n) { return n ? f(n - 1) + 1 : leaf((int)words.size()); };
	auto shared = std::make_shared<derived>();
	std::smatch m;
	std::string text = out.str();
	int matches = std::regex_search(text, m, std::regex("(1[0-9]?) ([0-9.]+)"));
	return f(9) + shared->twice(3) + (dynamic_cast<other *>((base *)shared.get()) != nullptr) + matches;
}

int main() {
	std::unique_ptr<base> object(new derived);
	int sum = recursive(6) + allocates(300) + array(20) + aligned(9) + (int)variadic(3, 1.0, 2.0, 3.0);
	sum += takesMany(1, 2, 3, 4, 5, 6, 7, 8, returnsBig(5)) + odd(9) + object->value(4);
	sum += catches(3) + rethrows(2) + library();
	printf("%d %s %5.3f\n", sum, "printed", sum / 7.0);
	std::cout << sum << ' ' << 0.1 << std::endl;
	try {
		std::string().at(5);
	} catch (const std::out_of_range &e) {
		puts(e.what());
	}
	return 0;
}
