// A write through a null pointer, three calls deep, without optimization.
struct list { struct list *next; int value; };
static void set(struct list *l, int v) { l->value = v; }
static void walk(struct list *l, int n) { set(n ? l->next : l, n); walk(l->next, n + 1); }
int main(void) {
	struct list second = {0, 0}, first = {&second, 0};
	walk(&first, 0);
	return first.value;
}
