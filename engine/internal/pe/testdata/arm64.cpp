// Functions with handlers of exceptions, whose code is apart: see arm64_test.go.
extern "C" long leaf(long a) { volatile long b = a; return b * 3; }
long catches(long n) {
	long a = leaf(n), b = leaf(a), c = leaf(b);
	struct S { long v; ~S() { leaf(v); } } s{a + b};
	try { if (leaf(c) == 3) throw 4; c = leaf(c + a); } catch (int x) { c += leaf(x + b); } catch (...) { c += leaf(a * b); }
	return leaf(c) + s.v;
}
extern "C" long start() { return catches(4); }
