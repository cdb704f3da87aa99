// SPDX-License-Identifier: Apache-2.0
// Three threads wait, and the first one throws what nobody catches.
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

static int ready;

struct Job {
	virtual ~Job() {}
	virtual int run(int n) = 0;
};

struct Waiter : Job {
	__attribute__((noinline)) int run(int n) override {
		__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
		for (;;) {
			pause();
			n++;
		}
		return n;
	}
};

static void *worker(void *p) { return (void *)(long)static_cast<Job *>(p)->run(1); }

__attribute__((noinline)) static void fail() { throw std::runtime_error("none"); }

int main() {
	static Waiter waiter;
	pthread_t threads[3];
	for (auto &t : threads) pthread_create(&t, nullptr, worker, &waiter);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 3) usleep(1000);
	usleep(50000);
	fail();
}
