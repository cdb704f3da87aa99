// Every variable says in a comment what is printed of it.
#include <cstddef>
namespace outer {
namespace { int in_unnamed = 1; }           // outer::(anonymous namespace)::in_unnamed = 1
enum class kind : unsigned char { first, second = 200 };
kind k = kind::second;                      // outer::k = outer::kind::second
enum plain { one = 1, two };
plain p = two;                              // outer::p = outer::two
struct base { int a = 1; virtual ~base() {} };
struct other { int b = 2; };
struct derived : base, other { int c = 3; };
struct holder { static int count; int own = 4; };
int holder::count = 5;                      // outer::holder::count = 5
template <class T, int N> struct box { T items[N]; };
box<short, 3> shorts = {{7, 8, 9}};         // outer::shorts = {items = {7, 8, 9}}
holder h;                                   // outer::h = {own = 4}
}
struct plain_base { int a; };
struct other_base { int b; };
struct sum : plain_base, other_base { int c; };
sum total = {{1}, {2}, 3};                  // = {<plain_base> = {a = 1}, <other_base> = {b = 2}, c = 3}
int target = 11;
int &reference = target;                    // = 11
bool no = false;                            // = false
char8_t utf = u8'x';                        // = 120 u8'x'
char32_t beyond[2] = {U'\f', char32_t(0x80000006)}; // = U"\f\U80000006"
decltype(nullptr) null = nullptr;           // = 0x0
int sum::*member = &sum::c;                 // = &sum::c
int sum::*no_member = nullptr;              // = NULL
struct node { node *next; int n; };
int main() { return outer::in_unnamed + target; }
