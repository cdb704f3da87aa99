// A crash in the destructor of a thread's own object, as the thread ends.
#include <thread>
#include <unistd.h>
struct Own { int *last; ~Own() { usleep(100000); *last = 1; } };
static thread_local Own own;
int main() { std::thread([] { own.last = nullptr; }).join(); }
