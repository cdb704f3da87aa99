// Samples the main thread of the program it is preloaded into: registers, the
// top of the stack, and what backtrace() of the C library says the stack is.
//
//	gcc -O2 -shared -fPIC sampler.c -o sampler.so
//	SAMPLES=dir/s LD_PRELOAD=./sampler.so program
//
// writes dir/s.PID and, at the first sample, dir/s.PID.maps. The file is a
// count of samples, then each sample: the count of PCs, of bytes of stack, 17
// registers by DWARF number, the PCs, the bytes from the red zone on; everything
// a 64-bit word.
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

// Code may keep what it needs below its stack pointer (psABI 3.2.2).
enum { RED_ZONE = 128 };

enum { CAPACITY = 1 << 30, STACK = 1 << 16, DEPTH = 1024, INTERVAL_US = 500 };

static char path[4096];
static uint64_t *file, *at;
static uintptr_t stack_end;

static void copy_maps(void) {
  char name[4200], buf[4096];
  snprintf(name, sizeof name, "%s.maps", path);
  int in = open("/proc/self/maps", O_RDONLY), out = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  for (ssize_t n; (n = read(in, buf, sizeof buf)) > 0;)
    if (write(out, buf, n) < 0) break;
  close(in);
  close(out);
}

static void sample(int sig, siginfo_t *info, void *context) {
  static const int order[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  static void *pcs[DEPTH];
  ucontext_t *u = context;
  uintptr_t sp = u->uc_mcontext.gregs[REG_RSP];
  if ((char *)at - (char *)file > CAPACITY - (1 << 20) || sp >= stack_end) return;
  if (file[0] == 0) copy_maps();
  int n = backtrace(pcs, DEPTH), first = 0;
  while (first < n && (uintptr_t)pcs[first] != (uintptr_t)u->uc_mcontext.gregs[REG_RIP]) first++;
  if (n == DEPTH || first == n) return;
  uintptr_t low = sp - RED_ZONE, bytes = (stack_end - low < STACK ? stack_end - low : STACK) & ~(uintptr_t)7;
  *at++ = n - first;
  *at++ = bytes;
  for (int i = 0; i < 17; i++) *at++ = u->uc_mcontext.gregs[order[i]];
  for (int i = first; i < n; i++) *at++ = (uintptr_t)pcs[i];
  memcpy(at, (void *)low, bytes);
  at += bytes / 8;
  file[0]++;
}

__attribute__((constructor)) static void start(void) {
  const char *prefix = getenv("SAMPLES");
  if (!prefix) return;
  snprintf(path, sizeof path - 16, "%s.%d", prefix, getpid());
  int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, CAPACITY) < 0) return;
  file = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (file == MAP_FAILED) return;
  at = file + 1;
  pthread_attr_t attr;
  void *low;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &size)) return;
  stack_end = (uintptr_t)low + size;
  backtrace(&low, 1); // loads the unwinder, outside of a handler
  struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval every = {{0, INTERVAL_US}, {0, INTERVAL_US}};
  setitimer(ITIMER_REAL, &every, NULL);
}
