// SPDX-License-Identifier: Apache-2.0

// A process of many threads, of which one is elsewhere: threads FOLDER THREADS OUTLIER.
#include <pthread.h>

#include "state.h"

#define APART __attribute__((noinline))

static const char *folder;
static long outlier;
static int waiting, may_go;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

APART void wait_for_work(void) {
	pthread_mutex_lock(&mutex);
	waiting++;
	while (!may_go)
		pthread_cond_wait(&changed, &mutex);
	pthread_mutex_unlock(&mutex);
}

APART void rebuild_index(void) {
	pthread_mutex_lock(&mutex);
	waiting++;
	pthread_mutex_unlock(&mutex);
	while (!state_may_go(folder))
		state_nap();
	pthread_mutex_lock(&mutex);
	may_go = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

APART void *worker(void *number) {
	if ((long)number == outlier)
		rebuild_index();
	else
		wait_for_work();
	return NULL;
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	folder = argv[1];
	outlier = atol(argv[3]);
	long count = atol(argv[2]);
	pthread_t *threads = calloc(count, sizeof *threads);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, worker, (void *)i))
			return 3;
	for (int all = 0; !all; state_nap()) {
		pthread_mutex_lock(&mutex);
		all = waiting == count;
		pthread_mutex_unlock(&mutex);
	}
	state_write(folder, "ready", 0);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	state_write(folder, "done", 0);
	return 0;
}
