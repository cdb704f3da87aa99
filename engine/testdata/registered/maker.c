/* SPDX-License-Identifier: Apache-2.0 */
/* Loads relocatable object files as a JIT would, registers each for debuggers, and waits in
   the code of the last. What it says when it is ready is "ready". Where MAP is set it writes
   a map for perf instead. */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct entry {
	struct entry *next, *prev;
	const char *file;
	uint64_t size;
};
struct {
	uint32_t version, action;
	struct entry *relevant, *first;
} __jit_debug_descriptor = {1, 0, 0, 0};

static int ready(void) {
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static void *load(const char *path) {
	FILE *f = fopen(path, "rb");
	char *data = malloc(1 << 20);
	size_t size = fread(data, 1, 1 << 20, f);
	fclose(f);
	Elf64_Ehdr *h = (Elf64_Ehdr *)data;
	Elf64_Shdr *s = (Elf64_Shdr *)(data + h->e_shoff);
	char *names = data + s[h->e_shstrndx].sh_offset;
	char *room = mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *next = room;
	void *code = 0;
	for (int i = 0; i < h->e_shnum; i++) {
		if (!(s[i].sh_flags & SHF_ALLOC) || s[i].sh_size == 0)
			continue;
		next = (char *)(((uintptr_t)next + 63) & ~(uintptr_t)63);
		s[i].sh_addr = (uintptr_t)next;
		memcpy(next, data + s[i].sh_offset, s[i].sh_size);
		if (!strcmp(names + s[i].sh_name, ".text"))
			code = next;
		next += s[i].sh_size;
	}
	if (getenv("MAP")) {
		char name[99];
		snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
		f = fopen(name, "a");
		fprintf(f, "%lx %lx made code\n", (long)room, 1l << 20);
		fclose(f);
	} else {
		struct entry *e = calloc(1, sizeof *e);
		e->file = data, e->size = size, e->next = __jit_debug_descriptor.first;
		__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = e;
	}
	Elf64_Sym *symbols = 0;
	for (int i = 0; i < h->e_shnum; i++)
		if (s[i].sh_type == SHT_SYMTAB)
			for (symbols = (Elf64_Sym *)(data + s[i].sh_offset); strcmp(data + s[s[i].sh_link].sh_offset + symbols->st_name, "entry"); symbols++)
				;
	return (char *)code + symbols->st_value;
}

int main(int argc, char **argv) {
	int (*entry)(int (*)(void)) = 0;
	for (int i = 1; i < argc; i++)
		entry = load(argv[i]);
	return entry(ready);
}
