// A small server that crashes: the subject of the README's first command.
// Three workers wait for requests; the main thread serves a bad one.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct header {
	const char *name;
	const char *value;
	struct header *next;
};

struct request {
	char line[64];
	struct header *headers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int waiting, queued;

// header_named is inlined into its callers.
static inline const char *header_named(const struct request *r, const char *name)
{
	for (const struct header *h = r->headers; h; h = h->next)
		if (strcmp(h->name, name) == 0)
			return h->value;
	return NULL;
}

// content_length trusts that every request says how long it is.
static inline long content_length(const struct request *r)
{
	const char *value = header_named(r, "Content-Length");
	long n = 0;
	for (; *value >= '0' && *value <= '9'; value++)
		n = n * 10 + *value - '0';
	return n;
}

__attribute__((noinline)) static int read_body(struct request *r)
{
	long n = content_length(r);
	char *body = calloc(1, n + 1);
	snprintf(r->line, sizeof r->line, "body of %ld bytes", n);
	free(body);
	return n > 0;
}

__attribute__((noinline)) static int serve(struct request *r, int depth)
{
	volatile int before = depth; // keeps the calls nested
	if (depth > 0)
		return serve(r, depth - 1) + before;
	return read_body(r) + before;
}

static int by_name(const void *a, const void *b)
{
	struct request *r = *(struct request *const *)a;
	if (r->line[0] == '!')
		return serve(r, 2);
	return strcmp(r->line, (*(struct request *const *)b)->line);
}

__attribute__((noinline)) static void *worker(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	waiting++;
	while (!queued)
		pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	mallopt(M_ARENA_MAX, 1); // keeps the core small
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32 << 10);
	static char *names[] = {"worker-1", "worker-2", "worker-3"};
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, &small, worker, names[i]);
	}
	for (int all = 0; !all; usleep(1000)) {
		pthread_mutex_lock(&lock);
		all = waiting == 3;
		pthread_mutex_unlock(&lock);
	}
	usleep(20000); // until the last one waits
	struct header host = {"Host", "example.org", NULL};
	struct request good = {"GET /", &host}, bad = {"!POST /upload", &host};
	struct request *batch[] = {&bad, &good};
	qsort(batch, 2, sizeof batch[0], by_name);
	puts("served");
}
