// SPDX-License-Identifier: Apache-2.0

// Writes its command line and its environment, each word with a NUL behind it, to the files of its first two
// arguments, and crashes.
#include <stdio.h>
#include <string.h>

extern char **environ;

static void write_words(const char *path, char **words) {
  FILE *f = fopen(path, "w");
  for (; *words; words++)
    fwrite(*words, 1, strlen(*words) + 1, f);
  fclose(f);
}

int main(int argc, char **argv) {
  (void)argc;
  write_words(argv[1], argv);
  write_words(argv[2], environ);
  *(volatile int *)8 = 1;
}
