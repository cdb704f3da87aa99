// SPDX-License-Identifier: Apache-2.0

// A program for macOS without its libraries: functions that are inlined into each other, templates, a method, and a
// crash.

namespace shapes {

struct Node {
	Node *next;
	int value;
};

static inline int read(const Node *n) {
	return n->next->value;
}

static inline __attribute__((always_inline)) int twice(const Node *n) {
	int sum = 0;
	for (int i = 0; i < 2; i++)
		sum += read(n) + i;
	return sum;
}

template <typename T, int N> struct Ring {
	T items[N];
	int at = 0;
	T push(T item) {
		T old = items[at];
		items[at] = item;
		at = (at + 1) % N;
		return old;
	}
};

class Walker {
      public:
	virtual int walk(const Node *n, int depth);
	virtual ~Walker() = default;
	Ring<int, 7> ring;
};

__attribute__((noinline)) int Walker::walk(const Node *n, int depth) {
	if (depth == 0)
		return ring.push(twice(n));
	return walk(n, depth - 1) + ring.push(depth);
}

} // namespace shapes

// The program has no C++ library.
void operator delete(void *) noexcept {}
void operator delete(void *, unsigned long) noexcept {}
extern "C" int atexit(void (*)()) { return 0; }

extern "C" __attribute__((noinline)) int crash(int depth) {
	shapes::Node last = {nullptr, 3};
	shapes::Walker walker;
	return walker.walk(&last, depth);
}

int main(int argc, char **) {
	return crash(argc) + 1;
}
