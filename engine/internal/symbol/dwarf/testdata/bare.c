// A subject without a library, for any architecture.
static inline int twice(int v) { return v * 2 + (v >> 3); }
static inline int mix(int a, int b) {
  if (a > b)
    return twice(a) ^ b;
  return twice(b) - a;
}
__attribute__((noinline)) int work(int v) {
  int sum = 0;
  for (int i = 0; i < v; i++) sum += mix(i, sum);
  return sum;
}
void _start(void) {
  volatile int v = 9;
  v = work(v) + mix(v, 7);
  for (;;) v++;
}
