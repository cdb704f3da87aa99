// SPDX-License-Identifier: Apache-2.0
int leaf(int n) { return n - 3; }

int deepest(int n) {
	volatile int *p = (int *)(long)leaf(n);
	return *p + n;
}

int middle(int n) { return deepest(n) + 1; }

void _start(void) {
	for (;;)
		middle(3);
}
