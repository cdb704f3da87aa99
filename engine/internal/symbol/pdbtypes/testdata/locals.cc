// SPDX-License-Identifier: Apache-2.0

// A program with variables of many kinds, for pdbtypes_test.go. locals.pdb.gz is made by
//
//	clang-cl-22 --target=x86_64-pc-windows-msvc /c /Z7 /O1 /GS- /GR- -fdebug-compilation-dir=. -fstandalone-debug locals.cc
//	lld-link-22 /debug /entry:entry /nodefaultlib /subsystem:console /pdbsourcepath:. /pdb:locals.pdb locals.obj
//	gzip -9n locals.pdb

enum Color : unsigned char { red, green = 200 };
enum Plain { minus = -3, plus = 100000 };
union Number { int i; float f; };
struct Bits { unsigned a : 3; int b : 5; unsigned long long c : 40; };
struct Base { int base; virtual int id(); };
struct Virtual : virtual Base { int own; };
namespace space {
struct Point { double x, y; struct Inside { short s; } in; static int count; };
int Point::count = 9;
int hidden = 7;
}
template <class T, int N> struct Array { T list[N]; };
struct Unknown;
struct Pair { long long first, second; };

volatile int sink;
int Base::id() { return base; }

[[clang::optnone, clang::noinline]] int unoptimized(int number, const char *text, space::Point &point, Unknown *unknown, int (Base::*method)(), int Base::*member) {
  int matrix[2][3] = {{number}};
  Bits bits = {1, -2, 3};
  Number u = {4};
  Color color = green;
  Plain plain = minus;
  Array<int *, 2> array = {{&number, nullptr}};
  Virtual *object = nullptr;
  void (*function)(int, ...) = nullptr;
  wchar_t wide = L'w';
  static int counter = 5;
  {
    long long number = 6;
    sink += (int)number;
  }
  return matrix[0][0] + bits.a + u.i + color + plain + counter + (array.list[0] != nullptr) + (object != nullptr) + (function != nullptr) + wide + *text + (unknown != nullptr) + (int)point.x + (method != nullptr) + (member != nullptr);
}

__attribute__((always_inline)) inline int doubled(int value) {
  int twice = value * 2;
  sink = twice;
  return twice + sink;
}

__attribute__((noinline)) int optimized(int argument, Pair pair) {
  const int nine = 9;
  int before = doubled(argument) + nine;
  for (int i = 0; i < argument; i++)
    sink += i * before;
  return sink + (int)pair.second;
}

extern "C" int entry(int argc) {
  space::Point point = {1.5, 2.5, {3}};
  return unoptimized(argc, "text", point, nullptr, nullptr, &Base::base) + optimized(argc, {1, argc}) + space::hidden;
}

// The parts of a library that the compiler counts on.
extern "C" int _fltused = 0;
extern "C" void *memset(void *to, int value, unsigned long long size) {
  for (unsigned long long i = 0; i < size; i++)
    ((volatile char *)to)[i] = (char)value;
  return to;
}
