// SPDX-License-Identifier: Apache-2.0

// A program that crashes and dumps its memory into crash.dmp, with variables of many types.

#include <windows.h>
#include <dbghelp.h>
#include <string>
#include <vector>
#include <map>
#include <memory>
#include <list>
#include <set>
#include <optional>
#include <variant>
#include <unordered_map>
static LONG WINAPI crashed(EXCEPTION_POINTERS *pointers) {
  HANDLE file = CreateFileA("crash.dmp", GENERIC_WRITE, 0, 0, CREATE_ALWAYS, 0, 0);
  MINIDUMP_EXCEPTION_INFORMATION information = {GetCurrentThreadId(), pointers, FALSE};
  MiniDumpWriteDump(GetCurrentProcess(), GetCurrentProcessId(), file, MiniDumpWithFullMemory, &information, 0, 0);
  CloseHandle(file);
  ExitProcess(0);
}
enum class Color : unsigned char { Red, Green = 200 };
enum Plain { A, B = -3, C };
union U { int i; float f; unsigned char b[4]; };
struct Bits { unsigned a : 3; int b : 5; unsigned long long c : 40; bool d : 1; };
struct Base { int base = 11; virtual ~Base() {} virtual int id() { return base; } };
struct V1 : virtual Base { int v1 = 22; };
struct V2 : virtual Base { int v2 = 33; };
struct Derived : V1, V2 { int own = 44; Color color = Color::Green; static int count; struct Nested { int q; } n{5}; };
int Derived::count = 99;
template <class T, int N> struct Array { T data[N]; };
namespace ns { struct Point { double x, y; }; static int hidden = 7; Point origin{1.5, -2.5}; namespace { struct Anon { int z; } anon{3}; } }
thread_local int tls_value = 1234;
const int constant = 321;
struct Node { Node *next; int value; };
volatile int sink;
__attribute__((noinline)) int crash(int depth, const std::string &text, ns::Point point, Derived *derived, int (Base::*method)(), int Derived::*member) {
  int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  char buffer[16] = "hello";
  wchar_t wide[8] = L"wide";
  Bits bits = {5, -7, 0x123456789aULL, true};
  U u; u.f = 1.0f;
  Plain plain = B;
  Color color = Color::Green;
  std::string own = text + " world, which is long enough for the heap";
  std::vector<int> numbers = {1, 2, 3, 4};
  std::map<int, std::string> names = {{1, "one"}, {2, "two"}};
  std::unique_ptr<int> pointer(new int(42));
  std::list<double> doubles = {0.5, 0.25};
  std::optional<int> maybe = 17;
  std::variant<int, std::string> either = "variant";
  Array<short, 3> shorts = {{-1, 0, 1}};
  Node second = {nullptr, 2}, first = {&second, 1};
  Derived &reference = *derived;
  const volatile int *const cvp = &depth;
  bool flag = true; long long big = -1234567890123LL; unsigned char uc = 200; float f = 3.25f; long double ld = 2.5L;
  void *nothing = nullptr; int (*function)(int) = nullptr; decltype(nullptr) np = nullptr;
  char16_t c16 = u'x'; char32_t c32 = U'y';
  auto lambda = [&](int x) { return x + depth; };
  static int counter = 5;
  { int inner = depth * 2; int depth = 77; sink = inner + depth;
    if (depth) *(volatile int *)8 = inner; }
  sink = lambda(1) + numbers.size() + names.size() + own.size() + matrix[1][1] + buffer[0] + wide[0] + bits.a + u.i + plain + (int)color + *pointer + doubles.size() + *maybe + either.index() + shorts.data[0] + first.value + reference.own + *cvp + flag + big + uc + f + ld + (nothing == nullptr) + (function == nullptr) + c16 + c32 + counter + (np == nullptr) + (derived->*method)() + derived->*member + point.x;
  return sink;
}
int main(int argc, char **argv) {
  SetUnhandledExceptionFilter(crashed);
  Derived d;
  tls_value += argc;
  return crash(argc + 41, "hi", ns::origin, &d, &Base::id, &Derived::own) + ns::hidden + ns::anon.z;
}
