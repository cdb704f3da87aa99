// A program with inlined calls, templates, variables and names of each kind.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int table[10] = {1, 2};
static int hidden = 3;

namespace ns {
template <class T> struct box {
  T value;
  __attribute__((noinline)) T get(int k) {
    std::vector<T> list;
    for (int i = 0; i < k; i++)
      list.push_back(value + i);
    std::sort(list.begin(), list.end());
    return list[k / 2];
  }
};
static inline int clipped(int x) { return std::min(std::max(x, 1), 100); }
} // namespace ns

static inline int twice(int x) { return ns::box<int>{x}.get(ns::clipped(x)) * 2 + hidden; }
inline int four(int x) { return twice(x) + twice(x + 1); }

extern "C" __attribute__((noinline)) int entry(int x) {
  int local[8];
  for (int i = 0; i < 8; i++)
    local[i] = i * x;
  hidden = x;
  std::printf("%p\n", static_cast<void *>(local));
  return four(x) + local[x & 7];
}

int main(int argc, char **) { return entry(argc) + table[argc]; }
