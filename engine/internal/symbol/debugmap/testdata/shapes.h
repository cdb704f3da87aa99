/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of the programs of debugmap_test.go share: a class that one of them defines, and functions that several have. */
struct Hidden;
struct Point { int x, y; double weight; };
enum Color { red, green = 5, blue };
int outside(int), bytes(void *);

#ifdef __cplusplus
extern "C" int kept(int, struct Point *), folded(int);
template <class T> struct Box {
	T value;
	static int count;
	__attribute__((noinline)) T twice(T other) { count++; T sum = value + other; return sum + value; }
};
template <class T> int Box<T>::count = 3;
inline __attribute__((noinline)) int shared(int a) { static int calls = 7; int before = calls; calls += a; return outside(before + calls); }
extern Hidden *hidden;
#endif
