// A program that crashes, for a core that is read on another machine.
#include <stdio.h>

struct box {
	int width;
	int height;
};

static volatile int sum;

__attribute__((noinline)) static int area(struct box *b)
{
	return b->height;	/* crashes here */
}

__attribute__((noinline)) static void add(struct box *b)
{
	sum += area(b);
}

int main(int argc, char **argv)
{
	struct box one = {argc, 2};
	add(&one);
	add((struct box *)(argc - 1L));
	printf("%s: %d\n", argv[0], sum);
}
