// A crash in the destructor of a thread's own object, as the thread ends.
#include <thread>
struct Own { int *last; ~Own() { *last = 1; } };
static thread_local Own own;
int main() { std::thread([] { own.last = nullptr; }).join(); }
