// SPDX-License-Identifier: Apache-2.0
//
// A machine that executes functions of a made language, whose frames are on the heap: function N at line 10*N calls
// function N+1, down to a depth that changes all the time, and begins anew. Frames that are given back are overwritten.
//
//   machine THREADS [sleep]      its threads; others come and go. With sleep they wait at the deepest frame
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct frame {
	struct frame *caller;
	unsigned number, line, check;
	unsigned *value; // of its variable, far from the frames
};

struct state {
	struct state *next;
	struct frame *top;
	int thread;
};

struct state *machine_states;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sink;
static unsigned *values;
static int sleeps;

__attribute__((noinline)) void work(unsigned n)
{
	if (sleeps)
		pause();
	for (unsigned i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void execute(struct state *s, unsigned depth)
{
	for (unsigned n = 1; n <= depth; n++) {
		struct frame *f = malloc(sizeof *f);
		f->caller = s->top;
		f->number = n;
		f->line = 10 * n;
		f->check = ~n;
		f->value = values + n * 4096;
		__atomic_store_n(&s->top, f, __ATOMIC_RELEASE);
		work(n == depth ? 300 : 20);
	}
	while (s->top) {
		struct frame *f = s->top;
		__atomic_store_n(&s->top, f->caller, __ATOMIC_RELEASE);
		memset(f, 0xdb, sizeof *f);
		free(f);
	}
	sink++; // it is no tail call
}

static void *begin(void *rounds)
{
	struct state *s = calloc(1, sizeof *s);
	s->thread = gettid();
	pthread_mutex_lock(&lock);
	s->next = machine_states;
	machine_states = s;
	pthread_mutex_unlock(&lock);
	for (unsigned long i = 0; !rounds || i < (unsigned long)rounds; i++)
		execute(s, sleeps ? 50 : 1 + i % 50);
	pthread_mutex_lock(&lock);
	struct state **at = &machine_states;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&lock);
	memset(s, 0xdb, sizeof *s);
	free(s);
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	sleeps = argc > 2;
	values = calloc(64 * 4096, sizeof *values);
	for (int n = 0; n < 64; n++)
		values[n * 4096] = 1000 + n;
	for (int i = 0; i < count; i++) {
		pthread_t t;
		pthread_create(&t, NULL, begin, NULL);
	}
	if (sleeps)
		usleep(300000);
	puts("ready");
	fflush(stdout);
	if (sleeps)
		pause();
	for (;;) {
		pthread_t t;
		pthread_create(&t, NULL, begin, (void *)200);
		pthread_join(t, NULL);
	}
}
