// The functions of calls.txt, which calls.py writes: one calls by a pointer, one calls a
// virtual function.
struct shape {
	virtual int area(int n);
};
extern "C" int pointer_call(int (*f)(int), int n) { return f(n) + n; }
extern "C" int virtual_call(shape *s, int n) { return s->area(n) + n; }
