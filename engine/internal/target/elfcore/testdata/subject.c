// A process to take cores of. usage: subject THREADS FILTER [LIBRARY]
// It starts THREADS threads, sets coredump_filter to FILTER, loads LIBRARY and
// deletes its file, or else maps its own file to be read; maps what is no code, says "ready PID", and dies of a null
// pointer when its standard input ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile int waiting;
static void *volatile kept[4];

static void *wait_forever(void *arg) {
  __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
  return arg;
}

static void *map(const char *path, int prot) {
  int fd = open(path, O_RDONLY);
  void *p = mmap(NULL, 4096, prot, MAP_PRIVATE, fd, 0);
  close(fd);
  return p;
}

int main(int argc, char **argv) {
  int threads = atoi(argv[1]);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  prctl(PR_SET_NAME, "subject-main");
  FILE *f = fopen("/proc/self/coredump_filter", "w");
  if (f == NULL || fputs(argv[2], f) < 0 || fclose(f) != 0) return 2;
#ifndef NO_DLOPEN
  if (argc > 3) {
    if (dlopen(argv[3], RTLD_NOW) == NULL) { fprintf(stderr, "%s\n", dlerror()); return 3; }
    unlink(argv[3]);
  }
#endif
  if (argc <= 3) kept[0] = map(argv[0], PROT_READ);  // its own file, to be read
  kept[1] = map("/etc/passwd", PROT_READ);
  kept[2] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int fd = memfd_create("jit", 0);
  if (ftruncate(fd, 4096) != 0) return 4;
  kept[3] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  for (int i = 0; i < threads; i++) {
    pthread_t t;
    pthread_create(&t, NULL, wait_forever, NULL);
  }
  while (waiting < threads) usleep(1000);
  usleep(20000);  // into pause()
  printf("ready %d\n", getpid());
  fflush(stdout);
  char c;
  if (read(0, &c, 1) < 0) return 5;
  *(volatile int *)0 = 1;
}
