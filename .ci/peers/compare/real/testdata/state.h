// SPDX-License-Identifier: Apache-2.0

// How a program tells the rig that it is where it was sent, and waits to be let go. The folder of the
// rig gets ready.NUMBER with the process ID, and done.NUMBER in the end; it has the file go once all may
// go on.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline void state_write(const char *folder, const char *name, int number) {
	char temporary[512], path[512];
	snprintf(temporary, sizeof temporary, "%s/.%s.%d", folder, name, number);
	snprintf(path, sizeof path, "%s/%s.%d", folder, name, number);
	FILE *f = fopen(temporary, "w");
	if (!f)
		_exit(3);
	fprintf(f, "%d\n", (int)getpid());
	fclose(f);
	if (rename(temporary, path))
		_exit(3);
}

static inline int state_may_go(const char *folder) {
	char path[512];
	snprintf(path, sizeof path, "%s/go", folder);
	return access(path, F_OK) == 0;
}

static inline void state_nap(void) {
	struct timespec t = {0, 200 * 1000 * 1000};
	nanosleep(&t, NULL);
}
