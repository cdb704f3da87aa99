extern int sink(void *, int);
int leaf(int a) { return a + 1; }
int one(int a) { char b[100]; return sink(b, a); }
int vla(int n) { char b[n]; return sink(b, n) + 1; }
int far(int n) { char b[100000]; b[n] = 1; return sink(b, n) + sink(b, n); }
int rec(int n) { return n ? rec(n - 1) * one(n) + leaf(n) : vla(n); }
int sink(void *p, int n) { return *(volatile int *)p + n; }
void _start(void) { rec(3); for (;;) {} }
