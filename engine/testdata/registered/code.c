/* SPDX-License-Identifier: Apache-2.0 */
/* What maker.c loads and registers. It has no relocations in its code. */
__attribute__((noinline)) static int deep(int (*wait)(void), int n) {
	char buffer[64];
	for (int i = 0; i < 64; i++)
		((volatile char *)buffer)[i] = (char)n;
	if (n == 0)
		return wait() + buffer[3];
	return deep(wait, n - 1) + buffer[n];
}
int entry(int (*wait)(void)) {
	return deep(wait, 2) + 1;
}
