// Programs whose signal handler catches a crash. The argument is how they crash and what
// the handler does then, with a slash between; a handler named with a minus before it does not
// ask for a siginfo_t.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct item { int before[6]; int value; };
static const char *volatile end;
static siginfo_t *told;
static volatile int zero;

__attribute__((noinline)) int member(struct item *it) { return it->value; }
__attribute__((noinline)) int divide(int a, int b) { return a / b; }
__attribute__((noinline)) void undefined(void) { __builtin_trap(); }
__attribute__((noinline)) int wild(void) { return *(volatile int *)0xdead00000000beef; }
__attribute__((noinline)) int deep(int n) { volatile char b[64]; b[0] = n; return deep(n + 1) + b[0]; }
__attribute__((noinline)) int call_null(void) { return ((int (*volatile)(void))0)() + 1; }
__attribute__((noinline)) int cut(void) {
  char name[] = "/tmp/cut.XXXXXX";
  int f = mkstemp(name);
  unlink(name);
  if (ftruncate(f, 4096)) return 0;
  volatile char *p = mmap(0, 16384, PROT_READ, MAP_SHARED, f, 0);
  return p[8192];
}

static void finish(int s) {
  signal(s, SIG_DFL);
  if (!strcmp(end, "requeue")) syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), s, told);
  if (!strcmp(end, "raise")) raise(s);
  if (!strcmp(end, "kill")) kill(getpid(), s);
  if (!strcmp(end, "abort")) abort();
  if (!strcmp(end, "fail")) ((struct item *)0)->value = 1;
  if (!strcmp(end, "nested")) { end = "abort"; zero = divide(s, zero); }
  if (!strcmp(end, "return")) { raise(s); return; }
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, s);
  sigsuspend(&all);
}
static void plain(int s) { finish(s); }
static void handler(int s, siginfo_t *info, void *context) { told = info; finish(s); }

int main(int argc, char **argv) {
  char *kind = argv[1];
  char *slash = strchr(kind, '/');
  *slash = 0;
  end = slash + 1;
  int isPlain = *end == '-';
  end += isPlain;
  stack_t stack = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
  sigaltstack(&stack, 0);
  for (int s = 1; s < 32; s++) {
    struct sigaction a = {.sa_flags = isPlain ? 0 : SA_SIGINFO};
    if (!strcmp(kind, "deep")) a.sa_flags |= SA_ONSTACK;
    if (isPlain) a.sa_handler = plain; else a.sa_sigaction = handler;
    sigaction(s, &a, 0);
  }
  if (!strcmp(kind, "null")) return member(0);
  if (!strcmp(kind, "divide")) return divide(argc, argc - 2);
  if (!strcmp(kind, "undefined")) undefined();
  if (!strcmp(kind, "wild")) return wild();
  if (!strcmp(kind, "deep")) return deep(0);
  if (!strcmp(kind, "call_null")) return call_null();
  if (!strcmp(kind, "cut")) return cut();
  if (!strcmp(kind, "abort")) abort();
  if (!strcmp(kind, "sent")) kill(getpid(), SIGSEGV);
  return 0;
}
