// Calls through inlined functions, another thread and a callback of libc, and ends in
// abort: of a signal handler if there is an argument.
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>
#include <vector>

struct shape {
	int n;
	explicit shape(int n) : n(n) {}
};

static volatile int value = 3;
static bool isSignalled;
static volatile bool isWaiting;

extern "C" void handle(int) {
	value = 4;
	abort();
}

static inline int deep(int n) {
	if (n == 0)
		isSignalled ? (void)raise(SIGUSR1) : abort();
	return value + n;
}

static inline int middle(int n) { return deep(n) + 1; }

__attribute__((noinline)) int outer(int n) {
	if (n > 0) {
		int r = outer(n - 1);
		return r + value;
	}
	return middle(n) * 2;
}

template <class T> __attribute__((noinline)) int each(std::vector<T> v) {
	int sum = 0;
	for (auto &x : v)
		sum += outer(x.n);
	return sum;
}

extern "C" int compare(const void *a, const void *b) {
	return *static_cast<const int *>(a) - *static_cast<const int *>(b) + each(std::vector<shape>{shape(4)});
}

__attribute__((noinline)) int sorted() {
	int a[] = {3, 1, 2};
	qsort(a, 3, sizeof *a, compare);
	return a[0] + value;
}

extern "C" void *wait(void *p) {
	isWaiting = true;
	for (;;)
		pause();
	return p;
}

int main(int argc, char **) {
	isSignalled = argc > 1;
	signal(SIGUSR1, handle);
	pthread_t t;
	pthread_create(&t, nullptr, wait, nullptr);
	while (!isWaiting)
		usleep(1000);
	int r = sorted();
	return r + value;
}
