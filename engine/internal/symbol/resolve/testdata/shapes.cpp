// A subject for symbolization: inlined calls over two units, templates, lambdas,
// static and anonymous functions, constructors, cold paths, C linkage inside a
// namespace. The tests compile it with the flags that they name.
#include "shapes.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace {
int hidden(int n) {
  for (int i = 0; i < n; i++) sink += shapes::step(i, n);
  return sink;
}
struct Local {
  int value;
  explicit Local(int v) : value(v) { sink += v; }
  __attribute__((noinline)) int twice() const { return shapes::Twice<int>::of(value) + sink; }
};
}  // namespace

static __attribute__((noinline)) int still(int n) { return hidden(n) + 1; }

namespace shapes {
extern "C" __attribute__((noinline)) int plain_c(int n) { return step(n, 3) + sink; }

template <class T>
__attribute__((noinline)) T apply(T v, int times) {
  auto more = [&](T x) { return Twice<T>::of(x) + step(times, 2); };
  for (int i = 0; i < times; i++) v += more(v);
  return v;
}

__attribute__((noinline)) int checked(int n) {
  if (__builtin_expect(n > 1000, 0)) {
    std::fprintf(stderr, "%d is too much\n", n);
    throw std::runtime_error("too much");
  }
  return apply(n, 3) + int(apply(double(n), 2));
}
}  // namespace shapes

int main(int argc, char **argv) {
  Local local(argc);
  int n = argc > 1 ? std::atoi(argv[1]) : 7;
  std::printf("%d\n", still(n) + shapes::plain_c(n) + shapes::checked(n) + local.twice() + shapes::other(n));
}
