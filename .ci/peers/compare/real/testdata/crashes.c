// SPDX-License-Identifier: Apache-2.0

// A program that crashes for one of three reasons: crashes null|abort|divide.
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

APART void *idle(void *unused) {
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv) {
	pthread_t thread;
	if (argc != 2 || pthread_create(&thread, NULL, idle, NULL))
		return 2;
	usleep(1000);
	return handle(argv[1]);
}
