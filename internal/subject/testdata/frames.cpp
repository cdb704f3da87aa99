// What a walk meets in C++: inlined calls, tail calls, calls through the PLT,
// exceptions in flight, alternate signal stacks, stack realignment, callbacks
// from C, frames of variable size. Each thread stops in one of them.
//   frames wait    prints a line and waits
//   frames crash   one thread fails at depth, in a signal handler
#include <alloca.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

std::atomic<int> parked{0};
volatile int sink;
bool crash;

__attribute__((noinline)) void park() {
  parked++;
  for (;;) pause();
}

// Inlined calls, three deep.
static inline __attribute__((always_inline)) int in3(int x) { park(); return x + 3; }
static inline __attribute__((always_inline)) int in2(int x) { return in3(x * 2) + 2; }
static inline __attribute__((always_inline)) int in1(int x) { return in2(x + 1) + 1; }
__attribute__((noinline)) int inlined(int x) { int r = in1(x); sink = r; return r; }

// A tail call: the caller's frame is gone.
__attribute__((noinline)) int tail_end(int x) { int r = inlined(x); sink = r; return r + 1; }
__attribute__((noinline)) int tail_call(int x) { sink = x; return tail_end(x + 1); }
__attribute__((noinline)) int tail_caller(int x) { int r = tail_call(x); sink = r; return r; }

// Through the PLT, into C and back.
static int compare(const void *a, const void *) { tail_caller(*(const int *)a); return 0; }
__attribute__((noinline)) int through_c(int n) {
  std::vector<int> v(n, 7);
  qsort(v.data(), v.size(), sizeof v[0], compare);
  return v[0];
}

// Thrown through, and stopped in a destructor that runs while unwinding.
struct Guard {
  ~Guard() { if (std::uncaught_exceptions() > 0) through_c(3); }
};
__attribute__((noinline)) void thrower(int depth) {
  Guard g;
  if (depth > 0) { thrower(depth - 1); sink = depth; return; }
  throw std::runtime_error("in flight");
}
__attribute__((noinline)) int exceptions() {
  try { thrower(4); } catch (const std::exception &e) { return (int)strlen(e.what()); }
  return 0;
}

// A frame whose size is known only at run time, and one that is realigned.
__attribute__((noinline)) int variable(int n) {
  char *p = (char *)alloca(n * 64 + 16);
  memset(p, 1, n * 64);
  int r = exceptions();
  sink = p[n];
  return r;
}
__attribute__((noinline)) int realigned(int n) {
  alignas(64) volatile char block[256];
  block[n & 255] = 3;
  int r = variable(n + 3);
  sink = block[n & 255];
  return r;
}

// On an alternate stack, in a handler, above a fault.
static void handler(int, siginfo_t *, void *) {
  if (crash) abort();
  realigned(5);
}
int *volatile nowhere;
__attribute__((noinline)) int fault(int depth) {
  volatile char pad[48];
  pad[depth % 48] = 1;
  if (depth > 0) return fault(depth - 1) + pad[depth % 48];
  *nowhere = 1;
  return 0;
}
__attribute__((noinline)) int on_alternate_stack(int depth) {
  stack_t ss{};
  ss.ss_size = 1 << 16;
  ss.ss_sp = malloc(ss.ss_size);
  sigaltstack(&ss, nullptr);
  struct sigaction sa{};
  sa.sa_sigaction = handler;
  sa.sa_flags = SA_ONSTACK | SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &sa, nullptr);
  return fault(depth);
}

int main(int argc, char **argv) {
  crash = argc > 1 && !strcmp(argv[1], "crash");
  std::vector<std::function<int()>> bodies = {
      [] { return inlined(1); },    [] { return tail_caller(2); }, [] { return through_c(4); },
      [] { return exceptions(); },  [] { return variable(3); },    [] { return realigned(9); },
      [] { return crash ? through_c(2) : on_alternate_stack(6); },
  };
  std::vector<std::thread> threads;
  for (auto &b : bodies) threads.emplace_back([&b] { sink = b(); });
  while (parked < (int)bodies.size()) usleep(1000);
  usleep(20000);
  if (crash) on_alternate_stack(10);
  printf("ready %d\n", getpid());
  fflush(stdout);
  for (;;) pause();
}
