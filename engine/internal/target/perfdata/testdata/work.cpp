// A program to record: threads that recurse and touch new memory, a child that
// goes on in a copy of the process, and one that executes the program again.
// g++ -std=c++17 -O1 -pthread work.cpp -o work
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned deep(int n, unsigned x) {
	unsigned v = x * 31 + n;
	for (int i = 0; i < 50; i++)
		v = v * 1664525u + 1013904223u;
	if (n > 0)
		v += deep(n - 1, v);
	sink = v;
	return v ^ x;
}

static void spin(int ms) {
	timespec t;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // samples are of time on a CPU
		for (int i = 0; i < 50; i++)
			deep(40, i);
		char *p = static_cast<char *>(std::malloc(1 << 20));
		std::memset(p, 1, 1 << 20);
		sink += p[12345];
		std::free(p);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

int main(int argc, char **argv) {
	if (argc > 1) {
		spin(60);
		return 0;
	}
	for (int child = 0; child < 2; child++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (child == 1)
				execl("/proc/self/exe", "work-again", "child", static_cast<char *>(nullptr));
			spin(60);
			_exit(0);
		}
	}
	std::thread other(spin, 120);
	spin(120);
	other.join();
	while (wait(nullptr) > 0)
		;
}
