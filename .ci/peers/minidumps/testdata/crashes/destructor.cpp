// A crash in the destructor of a static object, which exit calls.
#include <cstdlib>
#include <memory>
struct Log { int *last = nullptr; ~Log() { flush(); } void flush() { *last = 1; } };
static std::unique_ptr<Log> global;
__attribute__((noinline)) static void leave(int n) { exit(n); }
int main(int argc, char **) { global = std::make_unique<Log>(); leave(argc); }
