// A return address that was written over.
#include <string.h>
__attribute__((noinline)) static void fill(char *to, int n) { memset(to, 0x41, n); asm volatile(""); }
__attribute__((noinline)) static int copy(int n) { char room[16]; fill(room, n); asm volatile("" : : "r"(room)); return room[0]; }
int main(int argc, char **argv) { (void)argv; return copy(40 + argc) + 1; }
