// SPDX-License-Identifier: Apache-2.0

// Threads that wait for each other, are signalled, cancelled, and end in every way.

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread char own[64];
static int next, handled;

static void handle(int number) {
	char text[32];
	snprintf(text, sizeof text, "%d %s", number, own);
	__atomic_fetch_add(&handled, (int)strlen(text), __ATOMIC_RELAXED);
}

static void destroy(void *p) { free(p); }

static void prepare(void) { pthread_key_create(&key, destroy); }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((noinline)) static int deep(int n) {
	volatile char room[32];
	room[n % 32] = (char)n;
	return n ? deep(n - 1) + room[n % 32] : (int)strlen(own);
}

static void leave(void *p) {
	pthread_mutex_unlock(p);
}

// waits until it is cancelled.
static void *waits(void *p) {
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(leave, &lock);
	for (;;)
		pthread_cond_wait(&turn, &lock);
	pthread_cleanup_pop(1);
	return p;
}

static void *works(void *p) {
	int number = (int)(long)p, list[24];
	pthread_once(&once, prepare);
	pthread_setspecific(key, calloc(1, 100));
	snprintf(own, sizeof own, "thread %d", number);
	for (int i = 0; i < 24; i++)
		list[i] = i * 7919 % 101;
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < 3; round++) {
		pthread_mutex_lock(&lock);
		while (next % THREADS != number)
			pthread_cond_wait(&turn, &lock);
		next++;
		pthread_cond_broadcast(&turn);
		pthread_mutex_unlock(&lock);
		qsort(list, 24, sizeof *list, compare);
		list[round] += deep(12);
		char *text = malloc(300);
		snprintf(text, 300, "%*d %g", 40, list[3], list[2] / 3.0);
		free(text);
		pthread_kill(pthread_self(), SIGUSR1);
	}
	if (number % 2)
		pthread_exit((void *)(long)list[0]);
	return (void *)(long)list[1];
}

int main(void) {
	struct sigaction action = {.sa_handler = handle};
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_t threads[THREADS], waiter;
	pthread_create(&waiter, NULL, waits, NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, works, (void *)i);
	pthread_kill(threads[1], SIGUSR2);
	long sum = 0;
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		sum += (long)result;
	}
	pthread_cancel(waiter);
	pthread_join(waiter, NULL);
	printf("%ld %d\n", sum, handled > 0);
	return 0;
}
