// Eight threads that wait in different ways; one of them crashes once all others do.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <semaphore.h>
#include <thread>
#include <unistd.h>
#include <vector>
static std::mutex held, other;
static std::condition_variable never;
static std::atomic<int> ready;
static sem_t empty;
static int ends[2];
template <class Wait> static void waits(Wait wait) { ready++; wait(); }
static void deeper(int n) { if (n) { deeper(n - 1); asm volatile(""); } else waits([] { pause(); }); }
int main() {
	sem_init(&empty, 0, 0);
	if (pipe(ends)) return 1;
	held.lock();
	std::vector<std::thread> all;
	all.emplace_back([] { waits([] { std::lock_guard<std::mutex> l(held); }); });
	all.emplace_back([] { waits([] { std::unique_lock<std::mutex> l(other); never.wait(l); }); });
	all.emplace_back([] { waits([] { sem_wait(&empty); }); });
	all.emplace_back([] { waits([] { char c; if (read(ends[0], &c, 1)) sleep(1); }); });
	all.emplace_back([] { waits([] { std::this_thread::sleep_for(std::chrono::hours(1)); }); });
	all.emplace_back([] { deeper(20); });
	std::promise<int> p;
	std::future<int> f = p.get_future();
	all.emplace_back([&] { waits([&] { f.wait(); }); });
	all.emplace_back([] { while (ready < 7) usleep(1000); usleep(100000); *(volatile int *)16 = 1; });
	for (auto &t : all) t.join();
}
