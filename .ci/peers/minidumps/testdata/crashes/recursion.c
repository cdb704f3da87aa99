// A recursion that ends when the stack does.
static volatile int sink;
static int down(int n) { volatile char room[200]; room[n % 200] = n; int r = down(n + 1) + room[0]; sink = r; return r; }
int main(void) { return down(0); }
