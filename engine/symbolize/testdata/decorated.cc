// SPDX-License-Identifier: Apache-2.0

// Functions with decorated names, for images of Windows without a library.

using size = decltype(sizeof 0);

namespace std {
class type_info {
public:
	virtual ~type_info();
};
type_info::~type_info() {}
} // namespace std

void operator delete(void *, size) {}

namespace space {
template <class T> struct Box {
	int first(T t) const { return int(t) + 1; }
	virtual int second(const Box &, T *) { return 2; }
	virtual ~Box() {}
};
namespace {
int unnamed(Box<int> box) { return box.first(3); }
} // namespace
} // namespace space

int operator+(const space::Box<char> &box, int n) { return box.first(char(n)); }

extern "C" {
int __stdcall standard(int n) { return n; }
int __fastcall fast(int n) { return n; }
void *__cdecl memset(void *p, int, size) { return p; }
int _tls_index, _fltused;
}

__declspec(dllexport) int exported(space::Box<int> &box, int (*function)(int)) { return box.second(box, nullptr) + function(1); }

template <class F> int call(F f) { return f(1); }

extern "C" int start() {
	static space::Box<int> box;
	space::Box<char> other;
	auto local = [&](int n) {
		struct Local {
			int number() { return 5; }
		} l;
		return l.number() + n;
	};
	return call(local) + box.first(1) + space::unnamed(box) + (other + 2) + exported(box, nullptr) + standard(3) + fast(4);
}
