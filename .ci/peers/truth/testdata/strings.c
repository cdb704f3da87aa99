// SPDX-License-Identifier: Apache-2.0

// Functions of libc that have a variant for each processor.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

static char a[9000], b[9000];
static wchar_t v[700], w[700];
static volatile uintptr_t sink;

static void bytes(size_t at, size_t n) {
	memset(a + at, 'x', n);
	memcpy(b + 3, a + at, n);
	memmove(a + at + 5, a + at, n);
	memmove(a + at, a + at + 5, n);
	a[at + n] = 0;
	b[3 + n] = 0;
	sink += memcmp(a + at, b + 3, n) + (uintptr_t)memchr(a + at, 'y', n) + (uintptr_t)memrchr(a + at, 'y', n);
	sink += (uintptr_t)memmem(a + at, n, "xyx", 3);
	sink += (uintptr_t)mempcpy(b, a + at, n);
	explicit_bzero(b, n);
}

static void texts(size_t at, size_t n) {
	char *s = a + at, *t = b + at / 2;
	memset(s, 'k', n);
	s[n] = 0;
	strcpy(t, s);
	sink += strlen(s) + strnlen(s, n / 2) + strcmp(s, t) + strncmp(s, t, n) + strcasecmp(s, t) + strncasecmp(s, t, n);
	sink += (uintptr_t)strchr(s, 'q') + (uintptr_t)strrchr(s, 'k') + (uintptr_t)strchrnul(s, 'q') + (uintptr_t)strstr(s, "kkq");
	sink += strspn(s, "klm") + strcspn(s, "xyz") + (uintptr_t)strpbrk(s, "pq") + (uintptr_t)strcasestr(s, "KQ");
	sink += (uintptr_t)stpcpy(t, s) + (uintptr_t)stpncpy(t, s, n) + (uintptr_t)strncpy(t, s, n + 9);
	t[n / 2] = 0;
	strcat(t, s + n / 2);
	t[n / 2] = 0;
	strncat(t, s, n / 3);
}

static void wide(size_t n) {
	wmemset(v, L'w', n);
	v[n] = 0;
	wcscpy(w, v);
	wmemcpy(w, v, n);
	sink += wcslen(v) + wcsnlen(v, n / 2) + wcscmp(v, w) + wcsncmp(v, w, n) + (uintptr_t)wcschr(v, L'q') + (uintptr_t)wcsrchr(v, L'w');
	sink += (uintptr_t)wmemchr(v, L'q', n) + wmemcmp(v, w, n);
}

int main(void) {
	static const size_t sizes[] = {0, 1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 255, 257, 511, 1025, 2049, 4099};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		bytes(i, sizes[i]);
		texts(i * 3 % 61, sizes[i]);
		if (sizes[i] < 600)
			wide(sizes[i]);
	}
	texts(4090 - 4, 7); // across pages
	bytes(4090, 40);
	printf("%d %ld %g %s\n", (int)sink & 1, strtol("0x7f", NULL, 0), strtod("1.5e3", NULL), "end");
	return 0;
}
