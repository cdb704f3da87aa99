// SPDX-License-Identifier: Apache-2.0
//
// Ends as its argument says: by exceptions, virtual calls and threads of C++.
#include "chain.h"
#include <functional>
#include <stdexcept>
#include <string>
#include <string.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

// An exception that is caught further out leaves functions, too.
struct Entered {
	__attribute__((always_inline)) ~Entered() { leave(); }
};
#undef ENTER
#define ENTER \
	enter();  \
	Entered entered

static volatile int zero;

struct Shape {
	virtual ~Shape() {}
	virtual int t_area(int n) = 0;
};

struct Square : Shape {
	NOINLINE int t_area(int n) override {
		ENTER;
		if (n >= zero)
			throw std::runtime_error("nobody catches it");
		return n;
	}
};

struct Left {
	virtual ~Left() {}
	int left = 1;
};
struct Both : Left, Shape {
	NOINLINE int t_area(int n) override { // through a thunk
		ENTER;
		std::vector<int> list{3, 1, 2};
		return list.at(n + 7);
	}
};

NOINLINE int t_shape(Shape *s, int n) {
	ENTER;
	return s->t_area(n) + 1;
}

NOINLINE int t_catches(Shape *s, int n) {
	ENTER;
	std::string kept(n + 30, 'x');
	try {
		return t_shape(s, n);
	} catch (std::out_of_range &) {
		return static_cast<int>(kept.size());
	}
}

NOINLINE int t_never(Shape *s, int n) noexcept {
	ENTER;
	std::string kept(n + 30, 'x');
	return t_catches(s, n) + static_cast<int>(kept.size());
}

NOINLINE int t_rethrows(Shape *s, int n) {
	ENTER;
	try {
		return t_catches(s, n);
	} catch (...) {
		throw;
	}
}

template <typename F> NOINLINE int t_applies(F f, int n) {
	ENTER;
	return f(n) + 1;
}

NOINLINE int t_step(int left, const std::function<int(int)> &end) {
	ENTER;
	volatile char room[24];
	room[left] = static_cast<char>(left);
	return (left ? t_step(left - 1, end) : end(2)) + room[left];
}

NOINLINE void t_thread(int n, const std::function<int(int)> *end) {
	ENTER;
	if (n == 2)
		usleep(50000), t_step(2, *end);
	for (;;)
		pause();
}

static void thread(int n, const std::function<int(int)> *end) {
	begin(n, static_cast<uint64_t>(syscall(SYS_gettid)));
	t_thread(n, end);
}

NOINLINE int t_main(int argc, const std::string &way) {
	ENTER;
	Square square;
	Both both;
	std::function<int(int)> end = [&](int n) { return t_catches(&square, n); };
	if (way == "thunk")
		end = [&](int n) { return t_shape(&both, n); };
	if (way == "noexcept")
		end = [&](int n) { return t_never(&square, n); };
	if (way == "rethrow")
		end = [&](int n) { return t_rethrows(&square, n); };
	if (way == "null")
		end = [&](int n) { return t_shape(nullptr, n); };
	if (way == "lambda")
		end = [&](int n) { return t_applies([&](int m) { return t_shape(&square, m); }, n); };
	if (way == "threads") {
		std::thread first(thread, 1, &end), second(thread, 2, &end);
		first.join();
		second.join();
	}
	return t_step(argc, end);
}

int main(int argc, char **argv) {
	begin(0, static_cast<uint64_t>(getpid()));
	return t_main(argc, argc > 1 ? argv[1] : "") + 1;
}
