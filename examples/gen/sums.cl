// Adds up trees, one for a work-item.

struct node {
	int value, left, right; // left and right are indices, or negative
};

int sum(__global const struct node *nodes, int i)
{
	if (i < 0)
		return 0;
	int left = sum(nodes, nodes[i].left);
	int right = sum(nodes, nodes[i].right);
	return left + right + nodes[i].value;
}

__kernel void sums(__global const struct node *nodes, __global const int *roots, __global int *out)
{
	int item = get_global_id(0);
	out[item] = sum(nodes, roots[item]);
}
