// A call through the procedure linkage table, whose slot was written over.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <link.h>
static int spoil(struct dl_phdr_info *i, size_t size, void *seen) {
	(void)size;
	if ((*(int *)seen)++) return 0;
	uint64_t *slots = 0; uint64_t bytes = 0; Elf64_Rela *r = 0;
	for (int k = 0; k < i->dlpi_phnum; k++)
		if (i->dlpi_phdr[k].p_type == PT_DYNAMIC)
			for (Elf64_Dyn *d = (void *)(i->dlpi_addr + i->dlpi_phdr[k].p_vaddr); d->d_tag; d++) {
				if (d->d_tag == DT_JMPREL) r = (void *)d->d_un.d_ptr;
				if (d->d_tag == DT_PLTRELSZ) bytes = d->d_un.d_val;
			}
	for (uint64_t k = 0; k < bytes / sizeof *r; k++) {
		slots = (void *)(i->dlpi_addr + r[k].r_offset);
		*slots = 0x1234;
	}
	return 1;
}
__attribute__((noinline)) static void report(const char *s) { puts(s); asm volatile(""); }
int main(int argc, char **argv) { int seen = 0; (void)argc; dl_iterate_phdr(spoil, &seen); report(argv[0]); return 0; }
