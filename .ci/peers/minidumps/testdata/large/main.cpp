// main FOLDER LIBRARIES THREADS: every thread goes through 25 libraries and waits there;
// the last one crashes once all others wait. All libraries are on some stack.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include "plan.h"

static std::atomic<int> waiting;
static int threads;

static int last(plan *p) {
	if (p->thread < threads - 1) {
		waiting++;
		for (;;) pause();
	}
	while (waiting < threads - 1) usleep(1000);
	usleep(200000);
	return *(volatile int *)8;
}

int main(int, char **argv) {
	std::vector<plan::function> steps;
	int libraries = atoi(argv[2]);
	threads = atoi(argv[3]);
	for (int i = 0; i < libraries; i++) {
		std::string path = std::string(argv[1]) + "/lib" + std::to_string(i) + ".so";
		void *h = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
		if (!h) return fprintf(stderr, "%s\n", dlerror()), 1;
		steps.push_back((plan::function)dlsym(h, "step"));
	}
	std::vector<std::thread> all;
	for (int t = 0; t < threads; t++)
		all.emplace_back([=] {
			std::vector<plan::function> own;
			for (int k = 0; k < 25; k++) own.push_back(steps[(t * 25 + k) % libraries]);
			plan p{own.data(), own.data() + own.size(), last, t};
			exit(own[0] ? (*p.next++)(&p) : 1);
		});
	for (auto &t : all) t.join();
}
