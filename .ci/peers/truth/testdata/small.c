// SPDX-License-Identifier: Apache-2.0

struct list {
	struct list *next;
	int value;
};

int sum(const struct list *l, int n) {
	int s = 0;
	for (; l; l = l->next)
		for (int i = 0; i < n; i++)
			s += l->value * i ^ n;
	return s;
}
