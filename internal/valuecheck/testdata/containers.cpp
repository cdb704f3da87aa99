// The containers of the C++ standard library, empty, of one element, of three and of a
// thousand, one inside the other, in frames of calls, and a fault at the end.
#include <array>
#include <bitset>
#include <complex>
#include <deque>
#include <forward_list>
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

#define keep(x) ({ __asm__ volatile("" : : "g"(&(x)) : "memory"); })
#define CALL __attribute__((noinline))

struct Point { int x; double y; };
struct Shared : std::enable_shared_from_this<Shared> { int value = 31; };
struct Deleter { int kind; void operator()(int *p) const { delete p; } };
enum Color { RED, GREEN };
int *volatile null_pointer;

CALL int fault(const std::string &reason, const std::vector<std::string> &words) {
	std::string_view view = reason;
	keep(view);
	*null_pointer = int(words.size());
	return 0;
}

CALL int nested(int n) {
	std::vector<std::vector<int>> rows{{1, 2}, {}, {3}};
	std::map<std::string, std::vector<std::string>> words{{"a", {"apple", "a much longer word than the others"}}, {"b", {}}};
	std::vector<std::pair<int, std::string>> pairs{{1, "one"}, {2, "two"}};
	std::vector<std::optional<std::string>> maybe{"yes", std::nullopt};
	std::map<int, std::map<int, Point>> maps{{1, {{2, {3, 4.5}}}}};
	std::optional<std::variant<int, std::string>> choice{std::string("chosen")};
	std::array<std::list<int>, 2> lists{{{1, 2, 3}, {}}};
	std::tuple<int, std::tuple<std::string, bool>> tuples{1, {"inner", true}};
	std::vector<std::unique_ptr<Point>> owned;
	owned.push_back(std::make_unique<Point>(Point{5, 5.5}));
	owned.push_back(nullptr);
	keep(rows), keep(words), keep(pairs), keep(maybe), keep(maps), keep(choice), keep(lists), keep(tuples), keep(owned);
	std::vector<std::string> *pointer = &words["a"];
	return fault("a reason that is longer than fifteen", *pointer) + n;
}

CALL int owners(std::shared_ptr<Shared> by_value, std::string moved) {
	std::unique_ptr<int> unique(new int(5)), no_unique;
	std::unique_ptr<int[]> array(new int[3]{1, 2, 3});
	std::unique_ptr<int, Deleter> deleted(new int(6), Deleter{4});
	std::unique_ptr<int, void (*)(int *)> by_function(new int(9), [](int *p) { delete p; });
	std::shared_ptr<int> shared = std::make_shared<int>(7), second = shared, no_shared;
	std::shared_ptr<Point> from_new(new Point{1, 2.5});
	std::weak_ptr<int> weak = shared, no_weak;
	std::shared_ptr<void> untyped = shared;
	std::optional<int> some = 8, none;
	std::optional<Point> some_point = Point{9, 9.5};
	std::optional<std::string> text = "optional text", no_text;
	std::variant<int, double, std::string> v0 = 3, v1 = 2.5, v2 = "variant";
	std::variant<std::monostate, Point> v3, v4 = Point{1, 1};
	std::pair<int, std::string> pair{1, "pair"};
	std::tuple<> no_tuple;
	std::tuple<int> one_tuple{4};
	std::tuple<int, std::string, double> tuple{1, "tuple", 2.5};
	std::complex<double> complex{1.5, -2};
	keep(unique), keep(no_unique), keep(array), keep(deleted), keep(by_function), keep(shared), keep(second), keep(no_shared), keep(from_new);
	keep(weak), keep(no_weak), keep(untyped), keep(some), keep(none), keep(some_point), keep(text), keep(no_text), keep(v0), keep(v1), keep(v2), keep(v3);
	keep(v4), keep(pair), keep(no_tuple), keep(one_tuple), keep(tuple), keep(complex);
	return nested(int(by_value.use_count()));
}

CALL int associative(int n) {
	std::map<int, std::string> map0, map1{{1, "one"}}, map3{{3, "three"}, {-1, "minus one"}, {2, "two"}};
	std::map<int, int> map1000;
	std::multimap<std::string, int> multi{{"a", 1}, {"a", 2}};
	std::set<int> set0, set1{5}, set1000;
	std::set<std::string> names{"x", "yy", "a name that is longer than fifteen"};
	std::multiset<char> letters{'b', 'a', 'b'};
	std::unordered_map<std::string, int> hash0, hash1{{"only", 1}}, hash3{{"a", 1}, {"b", 2}, {"c", 3}};
	std::unordered_map<int, Point> hash1000;
	std::unordered_set<int> uset0, uset1{7}, uset3{1, 2, 3};
	std::unordered_multimap<int, int> umulti{{1, 1}, {1, 2}};
	for (int i = 0; i < n; i++) {
		map1000[i * 7 % 1009] = i;
		set1000.insert(i * 3);
		hash1000[i] = Point{i, i / 2.0};
	}
	auto found = map3.find(2);
	auto end = map3.end();
	auto in_hash = hash3.find("b");
	keep(map0), keep(map1), keep(map3), keep(map1000), keep(multi), keep(set0), keep(set1), keep(set1000), keep(names), keep(letters);
	keep(hash0), keep(hash1), keep(hash3), keep(hash1000), keep(uset0), keep(uset1), keep(uset3), keep(umulti), keep(found), keep(end), keep(in_hash);
	return owners(std::make_shared<Shared>(), "moved in");
}

CALL int sequences(int n) {
	std::vector<int> v0, v1{42}, v3{1, 2, 3}, v1000;
	std::vector<bool> b0, b1{true}, b70;
	std::vector<Point> points{{1, 1.5}, {2, 2.5}};
	std::vector<std::string> strings{"", "short", "a string that is longer than fifteen"};
	std::vector<Color> colors{GREEN, RED};
	std::deque<int> d0, d1{9}, d1000;
	std::list<int> l0, l1{8}, l3{1, 2, 3};
	std::forward_list<int> f0, f3{1, 2, 3};
	std::array<int, 0> a0;
	std::array<int, 3> a3{4, 5, 6};
	std::array<std::string, 2> astrings{"x", "y"};
	std::stack<int> stack;
	std::queue<int> queue;
	std::priority_queue<int> heap;
	std::bitset<70> bits;
	for (int i = 0; i < n; i++)
		v1000.push_back(i), d1000.push_back(-i);
	for (int i = 0; i < 70; i++)
		b70.push_back(i % 3 == 0);
	d1000.pop_front();
	bits[3] = bits[69] = true;
	stack.push(1), stack.push(2), queue.push(3), heap.push(5), heap.push(9);
	v3.reserve(10);
	auto it = v3.begin();
	auto lit = l3.begin();
	auto dit = d1000.begin();
	keep(v0), keep(v1), keep(v3), keep(v1000), keep(b0), keep(b1), keep(b70), keep(points), keep(strings), keep(colors), keep(d0), keep(d1), keep(d1000);
	keep(l0), keep(l1), keep(l3), keep(f0), keep(f3), keep(a0), keep(a3), keep(astrings), keep(stack), keep(queue), keep(heap), keep(bits);
	keep(it), keep(lit), keep(dit);
	return associative(n);
}

CALL int strings(std::string by_value, const std::string &by_reference, std::string_view view) {
	std::string s0, s1 = "s", s15 = "fifteen letters", s16 = "sixteen letters!", s1000(1000, 'z'), nuls("a\0b", 3), escapes = "tab\tquote\"back\\\x01\x7f\xff";
	std::wstring wide = L"wide \u20ac";
	std::u16string sixteen = u"sixteen \u20ac";
	std::u32string thirty_two = U"thirty-two \U0001f600";
	std::string_view v0, v3 = "one", part = std::string_view(s16).substr(3, 4);
	std::string *pointer = &s15, array[2] = {"first", "second"};
	keep(s0), keep(s1), keep(s15), keep(s16), keep(s1000), keep(nuls), keep(escapes), keep(wide), keep(sixteen), keep(thirty_two);
	keep(v0), keep(v3), keep(part), keep(pointer), keep(array), keep(view);
	return sequences(1000) + int(by_value.size() + by_reference.size());
}

int main() { return strings("by value", "by reference, and longer than fifteen", "a view"); }
