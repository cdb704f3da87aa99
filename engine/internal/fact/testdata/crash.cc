// crash KIND fails in the way of the table at the end.
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace app {
struct error { int code; };
struct derived : std::runtime_error { using std::runtime_error::runtime_error; };
struct below : derived { using derived::derived; };
}

static void thrown() { throw std::runtime_error("no such file"); }
static void thrown_own() { throw app::error{7}; }
static void thrown_derived() { throw app::derived("of my own"); }
static void thrown_below() { throw app::below("further below"); }
static void thrown_system() { throw std::system_error(ENOENT, std::generic_category(), "cannot open"); }
static void thrown_int() { throw 42; }
static void out_of_range() { std::vector<int> v(3); v.at(7) = 1; }
static void no_except() noexcept { throw std::logic_error("from a noexcept function"); }
static void rethrown() { try { throw std::invalid_argument("again"); } catch (...) { throw; } }
static void terminated() { std::terminate(); }
struct base { virtual ~base() {} virtual int call() = 0; base() { indirect(); } void indirect() { call(); } };
struct below : base { int call() override { return 1; } };
static void pure() { below b; }
struct shape { virtual int area() { return 1; } int size = 0; };
static shape *volatile none;
static void null_virtual() { none->area(); }

int main(int argc, char **argv)
{
	static const std::map<std::string, void (*)()> kinds{
		{"thrown", thrown}, {"thrown_own", thrown_own}, {"thrown_derived", thrown_derived}, {"thrown_int", thrown_int}, {"thrown_below", thrown_below}, {"thrown_system", thrown_system},
		{"out_of_range", out_of_range}, {"no_except", no_except}, {"rethrown", rethrown}, {"terminated", terminated}, {"pure", pure},
		{"null_virtual", null_virtual},
	};
	if (argc > 1 && kinds.count(argv[1])) kinds.at(argv[1])();
	return 1;
}
