// A process of many threads, each deep in recursion through templates and inlined
// calls, whose main thread crashes and leaves a core: threads N. With `wait` behind N it
// prints a line instead, and waits.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<int> ready{0};

template <int N> static inline int mix(int x) { return x * 31 + N; }

__attribute__((noinline)) int park(int kind) {
  ready++;
  for (;;) kind % 2 ? (void)sleep(1000) : (void)pause();
}

template <int N> __attribute__((noinline)) int level(int depth, int kind, const std::string& s) {
  if (depth <= 0) return park(kind);
  std::function<int(int)> next = [&](int q) { return q + level<(N + 1) % 8>(depth - 1, kind, s + "x"); };
  return mix<3>(next(mix<7>(depth))) + (int)s.size();
}

__attribute__((noinline)) int crash(int depth) {
  volatile int* nothing = nullptr;
  if (depth > 0) return crash(depth - 1) + 1;
  return *nothing;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < n; i++) threads.emplace_back([i] { level<0>(3 + i % 60, i, "t"); });
  while (ready < n) usleep(1000);
  if (argc > 2) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  return crash(25);
}
