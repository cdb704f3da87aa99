// An exception that leaves a function which promised none: terminate, abort.
#include <stdexcept>
#include <string>
__attribute__((noinline)) static void check(const std::string &s) { if (s.size() > 3) throw std::invalid_argument(s); }
__attribute__((noinline)) static void promise(const std::string &s) noexcept { check(s); asm volatile(""); }
int main(int, char **argv) { promise(std::string(argv[0]) + "long enough"); }
