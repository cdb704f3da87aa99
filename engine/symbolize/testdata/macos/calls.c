/* SPDX-License-Identifier: Apache-2.0 */
static int counter;
int shared = 4;
static inline __attribute__((always_inline)) int mix(int a, int b) { return a * 31 + b + counter; }
static __attribute__((noinline)) int helper(int x) {
	counter++;
	return mix(x, shared);
}
int work(int n) {
	int s = 0;
	for (int i = 0; i < n; i++)
		s += helper(mix(i, n));
	return s;
}
