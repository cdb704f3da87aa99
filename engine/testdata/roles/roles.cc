// SPDX-License-Identifier: Apache-2.0

// A program with a thread for each way in which C++ starts one. It prints a line when all of them wait.
#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <thread>
#include <unistd.h>
#include <vector>

#define APART __attribute__((noinline))

static std::atomic<int> waiting;
static volatile int sink;

APART void await() {
	waiting++;
	for (;;) {
		pause();
		sink = sink + 1;
	}
}

APART void refund(int n) { await(), sink = n; }
APART void worker() { await(), sink = 2; }
APART int answer(int n) { return await(), n + sink; }
APART void task() { await(), sink = 4; }
APART void bound(int a, int b) { await(), sink = a + b; }
APART void packed() { await(), sink = 7; }

struct Pool {
	APART void serve(int n) { await(), sink = n; }
};

struct Job {
	APART void operator()() { await(), sink = 3; }
};

int main() {
	Pool pool;
	std::function<void()> function = task;
	std::packaged_task<void()> package(packed);
	std::vector<std::thread> all;
	all.emplace_back(refund, 1);
	all.emplace_back(worker);
	all.emplace_back(&Pool::serve, &pool, 3);
	all.emplace_back(Job());
	all.emplace_back(function);
	all.emplace_back(std::bind(bound, 1, 2));
	all.emplace_back([] { await(), sink = 5; });
	all.emplace_back(std::move(package));
	auto later = std::async(std::launch::async, answer, 4);
	while (waiting < 9)
		usleep(1000);
	usleep(10000);
	puts("ready");
	fflush(stdout);
	await();
}
