// Code that was made at run time, of which nothing but its bytes is known, calls a function that crashes.
#include <string.h>
#include <sys/mman.h>
static int broken(int *p) { return *p; }
__attribute__((noinline)) static int enter(int (*f)(int *, int (*)(int *))) { int r = f((int *)4, broken); asm volatile(""); return r; }
int main(void) {
	// push rbp; mov rbp, rsp; call rsi; pop rbp; ret
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
	void *m = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(m, code, sizeof code);
	return enter((int (*)(int *, int (*)(int *)))m);
}
