// Every kind of instruction whose text is unusual, and types of C.
typedef int vec4 __attribute__((vector_size(16)));
typedef struct node { int value : 5; unsigned flag : 3; struct node *next; union { float f; double d; } u; } node;
enum color { RED, GREEN = 7, BLUE = -1 };
static const int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
int global_counter = 3;
_Thread_local int per_thread;
static volatile long hidden = 1 << 20;
int printf(const char *, ...);
void *memcpy(void *, const void *, unsigned long);

static inline int twice(int x) { int y = x + x; return y; }
static int __attribute__((always_inline)) thrice(int x) { return twice(x) + x; }

int choose(enum color c, int n) {
  switch (c) {
  case RED: return thrice(n);
  case GREEN: n += 2; break;
  case BLUE: { int inner = n * 3; n = inner - 1; } break;
  }
  static void *labels[] = {&&one, &&two, &&three};
  goto *labels[n & 1];
one:
  return n;
two:
  n = __builtin_expect(n, 1) ? twice(n) : 4;
three:
  return -n;
}

vec4 mix(vec4 a, vec4 b) { vec4 c = a * b + (vec4){1, 2, 3, 4}; return __builtin_shufflevector(a, c, 0, 5, 2, 7); }

__int128 wide(__int128 a, long b) { return a * b + 1; }

double floats(double a, float b, int n) {
  double sum = 0.5;
  for (int i = 0; i < n; i++) {
    double step = a / (b + i);
    sum += step;
    if (sum > 1e30) break;
  }
  return sum;
}

long atomics(long *p, _Atomic int *q) {
  long old = __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  long want = 5;
  __atomic_compare_exchange_n(p, &want, 7, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  *q += 2;
  return old + __atomic_exchange_n(p, want, __ATOMIC_RELAXED) + hidden + per_thread++;
}

int goes(int x) {
  __asm__ goto("# %0 %l1" : : "r"(x) : : away);
  return 1;
away:
  return 2;
}

int variadic(int n, ...) {
  __builtin_va_list ap;
  int sum = 0;
  __builtin_va_start(ap, n);
  while (n-- > 0) sum += __builtin_va_arg(ap, int);
  __builtin_va_end(ap);
  return sum;
}

int lists(const node *list, int n) {
  int buffer[n + 1], total = 0;
  node copy;
  for (; list; list = list->next) {
    memcpy(&copy, list, sizeof copy);
    buffer[total % (n + 1)] = copy.value + copy.flag;
    total += buffer[0] + table[1][total % 3];
  }
  printf("%d \"quoted\" \\ %s\n", total, "a; b { ( [ !dbg !5");
  global_counter += total;
  return choose(total > 3 ? RED : BLUE, total) + (int)floats(total, 2.0f, n);
}
