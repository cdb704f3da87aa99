// The containers of the C++ library, for the tests of their forms.
#include <any>
#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

using namespace std::literals;

struct Point {
  int x, y;
  bool operator<(const Point &o) const { return x != o.x ? x < o.x : y < o.y; }
};
struct Shape {
  virtual ~Shape() {}
  int id = 7;
};
struct Empty {};
struct alignas(32) Wide {
  int a;
  bool operator<(const Wide &o) const { return a < o.a; }
};
enum class Color { red, green };
static int twice(int n) { return 2 * n; }

template <class T> void keep1(T &one) { asm volatile("" : : "r"(&one) : "memory"); }
template <class... T> void keep(T &...all) { (keep1(all), ...); }

[[gnu::noinline]] void stop() { abort(); }

[[gnu::noinline]] void strings() {
  std::string empty, sso = "short", sso15 = "fifteen letters", heap = "sixteen letters!", binary("a\0b\x01", 4), quotes = "say \"hi\"\n";
  std::string large(1000, 'x'), reserved, moved = "to be moved away, it is long", taken = std::move(moved);
  reserved.reserve(100);
  reserved = "r";
  const std::string fixed = "fixed";
  std::wstring wide = L"wide", widelong = L"a wide string on the heap";
  std::u16string u16 = u"u16", u16long = u"a string of 16 bits on the heap";
  std::u32string u32 = U"u32";
#ifdef __cpp_lib_char8_t
  std::u8string u8 = u8"u8";
#endif
  std::string_view view = heap, none;
  std::wstring_view wview = wide;
  std::string *pointer = &heap;
  std::string &reference = heap;
  keep(empty, sso, sso15, heap, binary, quotes, large, reserved, taken, moved, fixed, wide, widelong, u16, u16long, u32, view, none, wview, pointer, reference);
  stop();
}

[[gnu::noinline]] void sequences() {
  std::vector<int> v0, v1{1}, v3{1, 2, 3}, v1000, reserved, moved{1, 2}, taken = std::move(moved);
  for (int i = 0; i < 1000; i++) v1000.push_back(i);
  reserved.reserve(10);
  std::vector<bool> b0, b3{true, false, true}, b1000(1000);
  for (int i = 0; i < 1000; i++) b1000[i] = i % 3 == 0;
  std::vector<std::string> words{"one", "two", "a word that is not short at all"};
  std::vector<std::vector<int>> nested{{1, 2}, {}, {3}};
  std::vector<Point> points{{1, 2}, {3, 4}};
  std::vector<double> doubles{1.5, -2, 1e100};
  std::vector<Wide> wides{{1}, {2}};
  std::vector<Empty> empties(3);
  std::vector<std::unique_ptr<int>> owners;
  owners.push_back(std::make_unique<int>(5));
  std::deque<int> d0, d3{1, 2, 3}, d1000;
  for (int i = 0; i < 1000; i++) i % 2 ? d1000.push_front(i) : d1000.push_back(i);
  std::deque<std::string> dwords{"a", "b"};
  std::deque<std::array<char, 600>> dbig(3);
  std::list<int> l0, l1{1}, l3{1, 2, 3};
  std::list<std::string> lwords{"x", "y"};
  std::list<Wide> lwide{{5}, {6}};
  std::list<int> l1000(1000, 4);
  std::forward_list<int> f0, f3{1, 2, 3};
  std::array<int, 3> a3{1, 2, 3};
  std::array<std::string, 2> awords{"p", "q"};
  std::array<int, 0> a0;
  const std::vector<int> fixed{7, 8};
  std::stack<int> stack;
  stack.push(1);
  std::queue<int> queue;
  queue.push(2);
  std::priority_queue<int> heap;
  heap.push(3);
  std::initializer_list<int> init{1, 2};
  keep(v0, v1, v3, v1000, reserved, moved, taken, b0, b3, b1000, words, nested, points, doubles, wides, empties, owners, d0, d3, d1000, dwords, dbig, l0, l1, l3, lwords, lwide, l1000, f0, f3, a3, awords, a0, fixed, stack, queue, heap, init);
  stop();
}

[[gnu::noinline]] void associative() {
  std::map<int, int> m0, m1{{1, 10}}, m3{{1, 10}, {2, 20}, {3, 30}}, m1000;
  for (int i = 0; i < 1000; i++) m1000[i * 7919 % 1000] = i;
  std::map<std::string, std::vector<int>> named{{"a", {1}}, {"b", {2, 3}}};
  std::map<Point, std::string> places{{{1, 2}, "home"}};
  std::map<char, long double> odd{{'a', 1.5L}};
  std::multimap<int, int> mm{{1, 1}, {1, 2}};
  std::set<int> s0, s3{3, 1, 2};
  std::set<std::string> words{"b", "a"};
  std::set<Wide> wides{{2}, {1}};
  std::multiset<char> letters{'a', 'a'};
  std::unordered_map<int, int> u0, u1{{5, 50}}, u1000;
  for (int i = 0; i < 1000; i++) u1000[i] = i;
  std::unordered_map<std::string, Point> places2{{"k", {1, 2}}};
  std::unordered_multimap<int, int> um{{1, 1}, {1, 2}};
  std::unordered_set<int> us0, us1{9};
  std::unordered_set<std::string> uwords{"w"};
  std::unordered_multiset<int> ums{1, 1};
  std::map<int, int> moved{{1, 2}}, taken = std::move(moved);
  std::map<int, std::map<int, std::string>> nested{{1, {{2, "x"}}}};
  keep(m0, m1, m3, m1000, named, places, odd, mm, s0, s3, words, wides, letters, u0, u1, u1000, places2, um, us0, us1, uwords, ums, moved, taken, nested);
  stop();
}

[[gnu::noinline]] void others() {
  std::optional<int> o0, o1 = 5;
  std::optional<std::string> ostring = "in", onone;
  std::optional<Point> opoint = Point{1, 2};
  std::variant<int, std::string, double> w0 = 1, w1 = "text", w2 = 2.5;
  std::variant<std::monostate, Point> wpoint = Point{3, 4};
  std::any any0, anyint = 5, anystring = "s"s, anypoint = Point{5, 6};
  std::pair<int, std::string> pair{1, "one"};
  std::tuple<> t0;
  std::tuple<int> t1{1};
  std::tuple<int, std::string, double> t3{1, "two", 3.5};
  std::tuple<Empty, int> tempty{Empty(), 2};
  std::unique_ptr<int> p0, p1(new int(5));
  std::unique_ptr<Shape> pshape(new Shape);
  std::unique_ptr<int[]> parray(new int[2]{1, 2});
  std::unique_ptr<int, void (*)(int *)> pdeleter(new int(6), [](int *p) { delete p; });
  std::shared_ptr<int> s0, s1 = std::make_shared<int>(5), s2 = s1;
  std::shared_ptr<Shape> sshape(new Shape);
  std::weak_ptr<int> k0, k1 = s1, kexpired = std::make_shared<int>(1);
  std::function<int(int)> f0, f1 = twice, f2 = [&](int n) { return n + *s1; };
  std::atomic<int> a1{5};
  std::atomic<bool> abool{true};
  std::atomic<int *> apointer{p1.get()};
  std::atomic<double> adouble{1.5};
  std::atomic<Color> acolor{Color::green};
  std::chrono::seconds seconds{5};
  std::chrono::system_clock::time_point epoch{};
  std::complex<double> complex{1, 2};
  std::reference_wrapper<int> ref(*p1);
  std::filesystem::path path = "/tmp/x";
  keep(o0, o1, ostring, onone, opoint, w0, w1, w2, wpoint, any0, anyint, anystring, anypoint, pair, t0, t1, t3, tempty, p0, p1, pshape, parray, pdeleter, s0, s1, s2, sshape, k0, k1, kexpired, f0, f1, f2, a1, abool, apointer, adouble, acolor, seconds, epoch, complex, ref, path);
  stop();
}

struct Holder {
  std::string name = "holder";
  std::vector<std::string> list{"a", "b"};
  std::map<int, std::string> map{{1, "m"}};
};

[[gnu::noinline]] void unmade() {
  stop();
  std::vector<int> v{1};
  std::string s = "later";
  std::map<int, int> m{{1, 2}};
  std::unordered_map<int, int> u{{1, 2}};
  std::list<int> l{1};
  std::deque<int> d{1};
  std::shared_ptr<int> p = std::make_shared<int>(1);
  std::vector<std::string> w{"w"};
  std::optional<std::string> o = "o";
  std::variant<int, std::string> a = 1;
  std::vector<bool> b{true};
  std::forward_list<int> f{1};
  std::set<int> t{1};
  std::function<int(int)> fn = twice;
  std::any any = 1;
  std::unique_ptr<int> q(new int);
  keep(v, s, m, u, l, d, p, w, o, a, b, f, t, fn, any, q);
}

[[gnu::noinline]] void dirty() {
  volatile char garbage[4000];
  for (auto &c : garbage) c = char(rand());
}

int main(int argc, char **argv) {
  Holder holder;
  keep(holder);
  switch (argc > 1 ? argv[1][0] : '0') {
  case 's': strings(); break;
  case 'q': sequences(); break;
  case 'a': associative(); break;
  case 'o': others(); break;
  default: dirty(); unmade();
  }
}
