/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that keep the truth about their own stacks: each function t_... notes its return
 * address, and where it is, in the chain of its thread, which whoever reads the core finds.
 * A run of equal calls is one entry. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline, noclone))
#define ALWAYS static inline __attribute__((always_inline))

enum { CHAINS = 8, ENTRIES = 500 };

struct entry {
	uint64_t back, here, times;
};

/* magic begins every chain, so that it is found without symbols. */
struct chain {
	uint64_t magic, thread, depth;
	struct entry entries[ENTRIES];
};

struct chain chains[CHAINS] __attribute__((aligned(64)));
__thread struct chain *chain;
/* Values that a debugger is asked for. */
__thread int before[5];
__thread int mark = 1;
int global_mark = 7;

/* The return address is where the call put it, without its signature, which differs from
 * frame to frame: __builtin_return_address would have leaves save it. */
ALWAYS void enter(void) {
	uint64_t here, back;
#if defined(__aarch64__)
	__asm__ volatile("mov %0, x30\n\tadr %1, ." : "=&r"(back), "=r"(here));
#elif defined(__riscv)
	__asm__ volatile("mv %0, ra\n\tauipc %1, 0" : "=&r"(back), "=r"(here));
#endif
	struct entry *e = &chain->entries[chain->depth];
	back &= (1ull << 48) - 1;
	if (chain->depth && e[-1].back == back) {
		e[-1].times++;
	} else {
		e->back = back, e->here = here, e->times = 1;
		chain->depth++;
	}
	__asm__ volatile("" ::: "memory");
}

ALWAYS void leave(void) {
	struct entry *e = &chain->entries[chain->depth - 1];
	__asm__ volatile("" ::: "memory");
	if (--e->times == 0)
		chain->depth--;
}

#define ENTER enter()
#define LEAVE leave()

/* The first function of a thread says which chain is its own. */
ALWAYS void begin(int n, uint64_t thread) {
	chain = &chains[n];
	chain->thread = thread;
	chain->magic = 0x6368616e63686169;
	before[0] = 2;
	before[4] = 42 + n;
	mark = 4711 + n;
}
