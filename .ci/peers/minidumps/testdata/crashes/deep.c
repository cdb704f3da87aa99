// A crash under more stack than writers of minidumps keep.
static volatile int sink;
static int down(int n) { volatile char room[100]; room[n % 100] = n; int r = (n ? down(n - 1) : *(volatile int *)8) + room[0]; sink = r; return r; }
int main(void) { return down(2000); }
