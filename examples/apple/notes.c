// A program for macOS that crashes: it counts the words of notes, of which one is missing.
#include <stddef.h>

struct note {
	const char *text;
	struct note *next;
};

// is_blank and words are inlined into their callers.
static inline int is_blank(char c) { return c == ' ' || c == '\n'; }

static inline int words(const struct note *n)
{
	int count = 0;
	for (const char *p = n->text; *p; p++)
		if (!is_blank(p[0]) && is_blank(p[1]))
			count++;
	return count;
}

__attribute__((noinline)) int count(const struct note *first)
{
	int total = 0;
	for (const struct note *n = first; n; n = n->next)
		total += words(n);
	return total;
}

__attribute__((noinline)) int summary(const struct note *first, int limit)
{
	int total = count(first);
	return total < limit ? total : limit;
}

int main(void)
{
	struct note second = { NULL, NULL }, first = { "buy milk ", &second };
	return summary(&first, 100) + 1;
}
