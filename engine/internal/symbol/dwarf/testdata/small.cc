// A subject without a library: see make.sh.
namespace outer {
namespace {
struct Counter {
  int n;
  int next(int by) { return n += by; }
};
}  // namespace
inline int twice(int v) { return v * 2 + (v >> 3); }
static inline int mix(int a, int b) {
  if (a > b) return twice(a) ^ b;
  return twice(b) - a;
}
extern "C" __attribute__((noinline)) int c_name(int v) { return mix(v, 7); }
__attribute__((noinline)) int work(int v) {
  Counter c{v};
  int sum = 0;
  for (int i = 0; i < v; i++) sum += mix(c.next(i), sum);
  return sum;
}
}  // namespace outer
extern "C" [[noreturn]] void _start() {
  volatile int v = 9;
  v = outer::work(v) + outer::c_name(v);
  for (;;) __asm__ volatile("pause");
}
