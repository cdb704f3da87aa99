// SPDX-License-Identifier: Apache-2.0

// A thread holds one lock of each kind, or is a reader of it, and others wait for them. Each
// prints its ID and the line that unwindd must have for it; HOLDER stands for the first thread,
// ENDED for one that ended with a lock. With the argument "ring" two threads wait for each other.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct account {
	long cents;
	pthread_mutex_t lock;
} accounts[3] = {{1, PTHREAD_MUTEX_INITIALIZER}, {2, PTHREAD_MUTEX_INITIALIZER}, {3, PTHREAD_MUTEX_INITIALIZER}};
static pthread_mutex_t recursive, inherit, robust, conditions = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_t holder;
static volatile int ready;

static void must(const char *line)
{
	char b[200];
	int n = snprintf(b, sizeof b, "%ld %s\n", syscall(SYS_gettid), line);
	if (write(1, b, n) != n)
		_exit(1);
}

static struct timespec later(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 1000;
	return t;
}

static void *hold(void *unused)
{
	must("HOLDER");
	pthread_mutex_lock(&accounts[1].lock);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&inherit);
	pthread_mutex_lock(&robust);
	pthread_rwlock_wrlock(&written);
	pthread_rwlock_rdlock(&shared);
	ready = 1;
	for (;;)
		pause();
}

static void *end(void *unused)
{
	must("ENDED");
	pthread_mutex_lock(&accounts[2].lock);
	return NULL;
}

#define WAITS(name, line, wait)        \
	static void *name(void *unused) \
	{                               \
		must(line);             \
		wait;                   \
		return NULL;            \
	}
WAITS(by_mutex, "the mutex at ADDRESS (accounts[1].lock) held by HOLDER", pthread_mutex_lock(&accounts[1].lock))
WAITS(by_recursive, "the mutex at ADDRESS (recursive) held by HOLDER", pthread_mutex_lock(&recursive))
WAITS(by_inherit, "the mutex at ADDRESS (inherit) held by HOLDER", pthread_mutex_lock(&inherit))
WAITS(by_robust, "the mutex at ADDRESS (robust) held by HOLDER", pthread_mutex_lock(&robust))
WAITS(by_timed, "the mutex at ADDRESS (accounts[1].lock) held by HOLDER", struct timespec t = later(); pthread_mutex_timedlock(&accounts[1].lock, &t))
WAITS(by_ended, "the mutex at ADDRESS (accounts[2].lock): its owner, ENDED, is not among the target's threads", pthread_mutex_lock(&accounts[2].lock))
WAITS(by_read, "the read-write lock at ADDRESS (written) held for writing by HOLDER", pthread_rwlock_rdlock(&written))
WAITS(by_write, "the read-write lock at ADDRESS (shared) held by 1 reader", pthread_rwlock_wrlock(&shared))
WAITS(by_condition, "the condition at ADDRESS (condition)", pthread_mutex_lock(&conditions); pthread_cond_wait(&condition, &conditions))
WAITS(by_semaphore, "the semaphore at ADDRESS (semaphore)", sem_wait(&semaphore))
WAITS(by_barrier, "the barrier at ADDRESS (barrier)", pthread_barrier_wait(&barrier))
WAITS(by_join, "the end of HOLDER", pthread_join(holder, NULL))
WAITS(by_poll, "", pause())

static void *(*const all[])(void *) = {by_mutex, by_recursive, by_inherit, by_robust, by_timed, by_ended, by_read, by_write,
	by_condition, by_semaphore, by_barrier, by_join, by_poll};

static void *ring(void *first)
{
	long i = (long)first;
	pthread_mutex_lock(&accounts[i].lock);
	pthread_barrier_wait(&barrier);
	must(i ? "the mutex at ADDRESS (accounts[0].lock) held by OTHER" : "the mutex at ADDRESS (accounts[1].lock) held by OTHER");
	pthread_mutex_lock(&accounts[1 - i].lock);
	return NULL;
}

static void make(pthread_mutex_t *m, int type, int protocol, int robustness)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setrobust(&a, robustness);
	pthread_mutex_init(m, &a);
}

int main(int argc, char **argv)
{
	pthread_t t;
	pthread_barrier_init(&barrier, NULL, 2);
	if (argc > 1) {
		for (long i = 0; i < 2; i++)
			pthread_create(&t, NULL, ring, (void *)i);
	} else {
		make(&recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
		make(&inherit, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
		make(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
		pthread_create(&t, NULL, end, NULL);
		pthread_join(t, NULL);
		pthread_create(&holder, NULL, hold, NULL);
		while (!ready)
			usleep(1000);
		for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
			pthread_create(&t, NULL, all[i], NULL);
	}
	for (;;)
		pause();
}
