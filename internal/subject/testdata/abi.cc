// SPDX-License-Identifier: Apache-2.0
//
// Crashes in the cold part of a function, where an exception is caught that was thrown four
// calls further in.
#include <stdexcept>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
static int *volatile nowhere;

NOINLINE static int crash() { return *(volatile int *)nowhere + 1; }

struct Kept {
	int id;
	~Kept() { sink += id; }
};

NOINLINE static int throws(int left) {
	Kept kept{left};
	if (left == 0)
		throw std::runtime_error("expected");
	return throws(left - 1) + kept.id;
}

NOINLINE static int catches(int left) {
	Kept kept{left};
	try {
		return throws(left) + kept.id;
	} catch (const std::exception &e) {
		sink = e.what()[0];
		return crash() + kept.id;
	}
}

NOINLINE static int outer(int left) {
	volatile char room[40];
	room[left] = 1;
	return catches(left) + room[left];
}

int main() { return outer(3) + 1; }
