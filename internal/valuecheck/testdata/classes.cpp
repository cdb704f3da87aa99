// What C++ adds to the types of C, in frames of calls, and a fault at the end.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <typeinfo>

#define keep(x) ({ __asm__ volatile("" : : "g"(&(x)) : "memory"); })
#define CALL __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

namespace shapes {
inline namespace v1 {
struct Shape {
	int id;
	static int count;
	static constexpr double unit = 0.5;
	explicit Shape(int id) : id(id) { count++; }
	virtual ~Shape() {}
	virtual double area() const = 0;
	virtual int run(int depth);
};
int Shape::count = 0;
}
struct Named { const char *name = "named"; virtual void rename(const char *n) { name = n; } };
struct Circle : Shape, Named {
	double radius;
	Circle(int id, double r) : Shape(id), radius(r) {}
	double area() const override { return 3.0 * radius * radius; }
	int run(int depth) override;
};
struct Base { int in_base = 10; virtual ~Base() {} };
struct Left : virtual Base { int in_left = 20; };
struct Right : virtual Base { int in_right = 30; };
struct Diamond : Left, Right { int in_diamond = 40; };
namespace { struct Hidden { int secret = 99; }; }
}

enum class Level : unsigned char { Low = 1, High = 200 };
enum class Mask : unsigned { A = 1, B = 2, C = 4 };
enum Plain { FIRST, SECOND };

template <typename T, int N> struct Buffer {
	T items[N];
	static const int size = N;
	template <typename U> CALL int fill(U value, int depth);
};
template <typename... Ts> struct Many;
template <> struct Many<> {};
template <typename T, typename... Ts> struct Many<T, Ts...> : Many<Ts...> { T head; Many(T h, Ts... t) : Many<Ts...>(t...), head(h) {} };
template <template <typename> class C, bool B> struct Holder { C<int> held; };
template <typename T> struct Box { T value; };

struct Methods {
	int data = 3, other = 4;
	int twice(int x) { return 2 * x + data; }
	virtual int thrice(int x) { return 3 * x; }
};
union Overlap { int i; struct { char a, b; } parts; Overlap() : i(0x4142) {} };
struct Bits { bool on : 1; Level level : 8; unsigned rest : 5; Plain plain : 3; };
struct Empty {};
struct [[gnu::packed]] Packed { char c; int i; double d; };
struct NoUnique { Empty e; int after; };
struct Self { Self &self; Self *pointer; int value; };

volatile int sink;
int *volatile null_pointer;
int global_int = 5;
namespace outer { namespace inner { int deep = 8; Level level = Level::High; } }
thread_local std::string *per_thread = nullptr;

CALL int fault(const shapes::Shape &s, int depth) {
	int here = depth + s.id;
	keep(here);
	*null_pointer = here;
	return here;
}
INLINE int step(int a, const shapes::Shape &s) {
	int doubled = a * 2;
	return fault(s, doubled) + doubled;
}
int shapes::Shape::run(int depth) { return depth; }
int shapes::Circle::run(int depth) {
	double local = radius + depth;
	keep(local);
	return step(depth, *this) + int(local);
}

template <typename T, int N> template <typename U> int Buffer<T, N>::fill(U value, int depth) {
	for (int i = 0; i < N; i++)
		items[i] = T(value) + i;
	shapes::Circle c(7, 2.5);
	keep(c);
	shapes::Shape *s = &c;
	shapes::Named &n = c;
	keep(s), keep(n);
	return s->run(depth) + c.run(depth) + size;
}

CALL int lambdas(int n) {
	int captured = n * 3;
	double by_value = 1.5;
	const char *text = "captured text";
	auto simple = [](int x) { return x + 1; };
	auto both = [&captured, by_value, text](int depth) {
		int inside = captured + depth;
		keep(inside);
		Buffer<short, 4> buffer;
		keep(buffer);
		return buffer.fill(2.0, inside) + int(by_value) + text[0];
	};
	std::function<int(int)> erased = both, nothing;
	keep(simple), keep(both), keep(erased), keep(nothing);
	return erased(n) + simple(n);
}

CALL int references(int &&moved, const int &constant, int &plain, int (&array)[3], int (*&pointer)(int), Self self) {
	int &local = plain;
	int &&r = 4 + sink;
	const std::string &temporary = std::string("kept alive");
	int *&to_pointer = *new (int *)(&plain);
	keep(local), keep(r), keep(temporary), keep(to_pointer), keep(self);
	std::pair<int, double> pair{6, 6.5};
	auto [first, second] = pair;
	auto &[first_ref, second_ref] = pair;
	int numbers[2] = {8, 9};
	auto [n0, n1] = numbers;
	keep(first), keep(second), keep(pair), keep(n0), keep(n1), keep(first_ref), keep(second_ref);
	auto list = {1, 2, 3};
	keep(list);
	return lambdas(moved + constant + array[0]) + n1 + (pointer ? 1 : 0);
}

CALL int members(Methods m) {
	int Methods::*data = &Methods::other, Methods::*no_data = nullptr;
	int (Methods::*function)(int) = &Methods::twice, (Methods::*virtual_function)(int) = &Methods::thrice, (Methods::*no_function)(int) = nullptr;
	std::nullptr_t null = nullptr;
	const std::type_info *info = &typeid(m);
	char16_t c16 = u'\u20ac';
	char32_t c32 = U'\U0001f600';
	wchar_t wide = L'w';
	const char16_t *text16 = u"sixteen \u20ac";
	const char32_t *text32 = U"thirty-two \U0001f600";
	const wchar_t *text_wide = L"wide";
	keep(data), keep(no_data), keep(function), keep(virtual_function), keep(no_function), keep(null), keep(info);
	keep(c16), keep(c32), keep(wide), keep(text16), keep(text32), keep(text_wide), keep(m);
	int array[3] = {1, 2, 3}, a = 5;
	int (*pointer)(int) = nullptr;
	Self self{self, &self, 12};
	return references(6, 7, a, array, pointer, self) + (m.*function)(2);
}

CALL int classes(shapes::Diamond by_value, shapes::Base *base) {
	shapes::Diamond diamond;
	shapes::Left *left = &diamond;
	shapes::Base &as_base = *left;
	shapes::Hidden hidden;
	shapes::Circle circle(3, -1.25);
	Level low = Level::Low, high = Level::High, odd = Level(7);
	Mask mask = Mask(5), no_mask = Mask(0), strange = Mask(9);
	Plain plain = SECOND;
	Many<int, double, char> many(1, 2.5, 'x');
	Holder<Box, true> holder{{17}};
	Box<Box<const char *>> nested{{"nested"}};
	Overlap overlap;
	Bits bits{true, Level::High, 21, SECOND};
	Empty empty;
	Packed packed{'p', -5, 0.25};
	NoUnique no_unique{{}, 3};
	struct Local { int x; enum Kind { SMALL, LARGE } kind; } local{1, Local::LARGE};
	static int calls = 3;
	static shapes::Diamond kept;
	keep(calls), keep(kept);
	keep(diamond), keep(left), keep(as_base), keep(hidden), keep(circle), keep(low), keep(high), keep(odd), keep(mask), keep(no_mask), keep(strange);
	keep(plain), keep(many), keep(holder), keep(nested), keep(overlap), keep(bits), keep(empty), keep(packed), keep(no_unique), keep(local), keep(base);
	return members(Methods()) + by_value.in_diamond;
}

int main() {
	per_thread = new std::string("of the thread");
	keep(outer::inner::deep), keep(outer::inner::level), keep(global_int);
	shapes::Diamond d;
	return classes(d, &d);
}
