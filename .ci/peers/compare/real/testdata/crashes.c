// SPDX-License-Identifier: Apache-2.0

// A program that crashes for one of three reasons: crashes null|abort|divide.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART __attribute__((noinline))

struct record {
	int length;
	const char *text;
};

static volatile int count;

APART int parse_header(struct record *volatile r) { return r->length + 1; }

APART void check_totals(int total) {
	if (total >= 0)
		abort();
	puts("sound");
}

APART int average(int sum) { return sum / count; }

APART int handle(const char *cause) {
	if (!strcmp(cause, "null"))
		return parse_header(NULL);
	if (!strcmp(cause, "abort"))
		check_totals(count);
	return average(7) + 1;
}

static volatile pid_t waiter;

APART void *idle(void *unused) {
	waiter = gettid();
	for (;;)
		pause();
	return unused;
}

// The cores are to differ by their causes alone: the other thread waits in each.
APART void await_waiter(void) {
	char path[64], state = 0;
	while (state != 'S') {
		usleep(1000);
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter);
		FILE *f = waiter ? fopen(path, "r") : NULL;
		if (f && fscanf(f, "%*d (crashes) %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
	}
}

int main(int argc, char **argv) {
	pthread_t thread;
	if (argc != 2 || pthread_create(&thread, NULL, idle, NULL))
		return 2;
	await_waiter();
	return handle(argv[1]);
}
