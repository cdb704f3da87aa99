// A program to make a profile of. It counts words that it makes up: one process
// keeps them in a tree, its child sorts them.

struct Node {
	unsigned word;
	unsigned count;
	Node *less, *more;
};

static Node nodes[1 << 16];
static unsigned used;
static unsigned words[1 << 16];

// Random numbers, of which small ones are frequent.
struct Source {
	unsigned state;
	unsigned next()
	{
		state = state * 1664525u + 1013904223u;
		unsigned a = state >> 16;
		state = state * 1664525u + 1013904223u;
		return a * (state >> 16) >> 16;
	}
};

static Node *make(unsigned word)
{
	Node *n = &nodes[used++ & 0xffff];
	n->word = word;
	n->count = 0;
	n->less = n->more = nullptr;
	return n;
}

__attribute__((noinline)) static Node *insert(Node *at, unsigned word)
{
	if (!at)
		at = make(word);
	if (word < at->word)
		at->less = insert(at->less, word);
	else if (word > at->word)
		at->more = insert(at->more, word);
	else
		at->count++;
	return at;
}

__attribute__((noinline)) static unsigned long total(const Node *at)
{
	return at ? total(at->less) + at->count + total(at->more) : 0;
}

template <typename T> static void swap(T &a, T &b)
{
	T was = a;
	a = b;
	b = was;
}

template <typename T, typename Before> __attribute__((noipa)) static void sort(T *first, T *last, Before before)
{
	if (last - first < 2)
		return;
	swap(first[0], first[(last - first) / 2]);
	T *pivot = first;
	for (T *at = first + 1; at < last; at++)
		if (before(*at, *first))
			swap(*at, *++pivot);
	swap(*first, *pivot);
	sort(first, pivot, before);
	sort(pivot + 1, last, before);
}

__attribute__((noipa)) static void count_by_tree(int rounds)
{
	Source source = {1};
	while (rounds-- > 0) {
		used = 0;
		Node *root = nullptr;
		for (int i = 0; i < 40000; i++)
			root = insert(root, source.next());
		words[0] = unsigned(total(root));
	}
}

struct Less {
	bool operator()(unsigned a, unsigned b) const { return a < b; }
};

__attribute__((noipa)) static void count_by_sort(int rounds)
{
	Source source = {2};
	while (rounds-- > 0) {
		for (unsigned &word : words)
			word = source.next();
		sort(words, words + 65536, Less());
	}
}

static long call(long number, long a = 0, const void *b = nullptr, long c = 0, long d = 0)
{
	register long r10 __asm__("r10") = d;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return result;
}

int main()
{
	const long prctl = 157, set_name = 15, fork = 57, wait4 = 61;
	if (call(fork) == 0) {
		call(prctl, set_name, "sorter");
		count_by_sort(30);
		return 0;
	}
	count_by_tree(30);
	call(wait4, -1);
	return 0;
}

__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xor %ebp, %ebp\n"
	"	call main\n"
	"	mov %eax, %edi\n"
	"	mov $60, %eax\n"
	"	syscall\n"
	"	.cfi_endproc\n"
	".size _start, .-_start\n");
