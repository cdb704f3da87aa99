// Threads that have allocated their thread-local storage or have not, waiting.
// With -DALONE it loads no libraries.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 6 };

__thread int counter = 7;
__thread char name[24] = "nobody";
__thread _Alignas(64) long wide[3];
static __thread short hidden = -3;

// Where the variables of each thread are, by the program itself.
struct { int id; void *counter, *name, *wide, *hidden; } truth[THREADS];

static pthread_barrier_t step;
static void *first, *second, *fixed;

static void mark(int n) {
    counter = 100 + n;
    snprintf(name, sizeof name, "thread %d", n);
    wide[2] = n * 1000003L;
    hidden = n;
    truth[n].id = gettid();
    truth[n].counter = &counter;
    truth[n].name = name;
    truth[n].wide = wide;
    truth[n].hidden = &hidden;
}

#ifdef ALONE
static void *load(const char *library) { return NULL; }
static void unload(void *library) {}
static void touch(void *library, const char *function, int n) {}
#else
static void *load(const char *library) {
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return handle;
}

static void unload(void *library) { dlclose(library); }

// dlsym without a library would keep what it finds from being unloaded.
static void touch(void *library, const char *function, int n) {
    void (*set)(int) = (void (*)(int))dlsym(library, function);
    set(n);
}
#endif

// Thread 1 uses first, whose module ID second gets after it. Thread 2 uses
// second. Thread 3 uses nothing. Threads 4 and 5 begin when all is loaded; 5 uses
// second and fixed.
static void *early(void *argument) {
    int n = (int)(long)argument;
    mark(n);
    pthread_barrier_wait(&step); // first is loaded
    if (n == 1) touch(first, "first_set", n);
    pthread_barrier_wait(&step); // first may be unloaded
    pthread_barrier_wait(&step); // second and fixed are loaded
    if (n == 2) touch(second, "second_set", n);
    pthread_barrier_wait(&step); // all is done
    for (;;) pause();
    return NULL;
}

static void *late(void *argument) {
    int n = (int)(long)argument;
    mark(n);
    if (n == 5) {
        touch(second, "second_set", n);
        touch(fixed, "fixed_set", n);
    }
    pthread_barrier_wait(&step);
    for (;;) pause();
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    mark(0);
    pthread_barrier_init(&step, NULL, 4);
    for (long n = 1; n <= 3; n++) pthread_create(&threads[n], NULL, early, (void *)n);
    first = load("libfirst.so");
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    unload(first);
    second = load("libsecond.so");
    fixed = load("libfixed.so");
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    pthread_barrier_destroy(&step);
    pthread_barrier_init(&step, NULL, 3);
    for (long n = 4; n <= 5; n++) pthread_create(&threads[n], NULL, late, (void *)n);
    pthread_barrier_wait(&step);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
