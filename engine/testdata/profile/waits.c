// Waits in three ways in one thread, and prints the nanoseconds that each took.
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { times = 12, length = 4000000 };

static int ends[2];
static volatile int word;

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void rest(void) {
	struct timespec t = {0, length};
	nanosleep(&t, 0);
}

__attribute__((noinline)) static void nap(void) {
	rest();
	__asm__ volatile("");
}

__attribute__((noinline)) static void take(void) {
	char c;
	if (read(ends[0], &c, 1) != 1) perror("read");
	__asm__ volatile("");
}

__attribute__((noinline)) static void await(void) {
	while (!word) syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
	word = 0;
}

__attribute__((noinline)) static void feed(void) {
	rest();
	if (write(ends[1], "x", 1) != 1) perror("write");
	__asm__ volatile("");
}

__attribute__((noinline)) static void rouse(void) {
	rest();
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
	while (word) rest(); // it was seen
}

static void *others(void *unused) {
	for (int i = 0; i < times; i++) feed();
	for (int i = 0; i < times; i++) rouse();
	return unused;
}

int main(void) {
	void (*waits[])(void) = {nap, take, await};
	const char *names[] = {"nap", "take", "await"};
	pthread_t t;
	if (pipe(ends)) return 1;
	for (int w = 0; w < 3; w++) {
		long all = 0;
		if (w == 1) pthread_create(&t, 0, others, 0);
		for (int i = 0; i < times; i++) {
			long start = now();
			waits[w]();
			all += now() - start;
		}
		printf("%s %ld\n", names[w], all);
	}
	pthread_join(t, 0);
	return 0;
}
