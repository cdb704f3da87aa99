// A program that reads beyond what it allocated, in a call that is inlined.
#include <cstdlib>

static inline __attribute__((always_inline)) int first(int *p, int i) { return p[i]; }

__attribute__((noinline)) int inner(int *p, int i);

__attribute__((noinline)) int inner(int *p, int i) {
  return first(p, i) + 1;
}

__attribute__((noinline)) int outer(int *p, int i) {
  return inner(p, i) + 1;
}

int main(int argc, char **) {
  int *p = static_cast<int *>(std::malloc(4 * sizeof(int)));
  int result = outer(p, argc + 3);
  std::free(p);
  return result;
}
