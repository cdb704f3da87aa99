// SPDX-License-Identifier: Apache-2.0

package value

import "context"

// This file walks the parts of containers: numbered elements, chains, trees.

// forEach executes the next clauses for each number below one.
func (r *run) forEach(ctx context.Context, c *boundClause, next int) error {
	n, err := r.number(ctx, c.exprs[0])
	if err != nil {
		return err
	}
	for i := uint64(0); i < n; i++ {
		if err := r.step(); err != nil {
			return err
		}
		r.slots[c.slot] = operand{n: i}
		if err := r.do(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// follow executes the next clauses for each node of a chain. A chain that comes back to a node
// is cut: by Brent's method, one earlier node is remembered.
func (r *run) follow(ctx context.Context, c *boundClause, next int) error {
	o, err := c.exprs[0].eval(ctx, r)
	earlier := o.n
	for steps, power := uint64(0), uint64(1); err == nil; steps++ {
		if err := r.step(); err != nil {
			return err
		}
		r.slots[c.slot] = o
		var goes uint64
		if goes, err = r.number(ctx, c.exprs[1]); err != nil || goes == 0 {
			return err
		}
		if steps > 0 && o.n == earlier {
			return r.broken("the chain of nodes is a circle")
		}
		if steps == power {
			earlier, power = o.n, power*2
		}
		if err = r.do(ctx, next); err != nil {
			return err
		}
		r.slots[c.slot] = o
		o, err = c.exprs[2].eval(ctx, r)
	}
	return err
}

// maxTreeDepth is deeper than a balanced tree in 64 bits of address space is.
const maxTreeDepth = 128

// tree executes the next clauses for each node of a binary tree, in order. Each node must name
// the one above as its parent, so none is visited twice.
func (r *run) tree(ctx context.Context, c *boundClause, next int) error {
	root, err := c.exprs[0].eval(ctx, r)
	if err != nil || root.n == 0 {
		return err
	}
	return r.subtree(ctx, c, next, root, operand{}, 0)
}

func (r *run) subtree(ctx context.Context, c *boundClause, next int, node, above operand, depth int) error {
	if depth > maxTreeDepth {
		return r.broken("the tree is more than %d nodes deep", maxTreeDepth)
	}
	if err := r.step(); err != nil {
		return err
	}
	r.slots[c.slot] = node
	if depth > 0 {
		parent, err := r.number(ctx, c.exprs[1])
		if err != nil {
			return err
		}
		if parent != above.n {
			return r.broken("the node at %#x has another parent than the one that leads to it", node.n)
		}
	}
	left, err := c.exprs[2].eval(ctx, r)
	if err != nil {
		return err
	}
	if left.n != 0 {
		if err := r.subtree(ctx, c, next, left, node, depth+1); err != nil {
			return err
		}
		r.slots[c.slot] = node
	}
	if err := r.do(ctx, next); err != nil {
		return err
	}
	r.slots[c.slot] = node
	right, err := c.exprs[3].eval(ctx, r)
	if err != nil || right.n == 0 {
		return err
	}
	return r.subtree(ctx, c, next, right, node, depth+1)
}

// maxBTreeHeight is higher than a B-tree of 2^64 nodes is, of at least 6 entries each.
const maxBTreeHeight = 24

// btree executes the next clauses for each place in the nodes of a B-tree, in order.
func (r *run) btree(ctx context.Context, c *boundClause, next int) error {
	root, err := c.exprs[0].eval(ctx, r)
	if err != nil {
		return err
	}
	height, err := r.number(ctx, c.exprs[1])
	if err != nil {
		return err
	}
	if height > maxBTreeHeight {
		return r.broken("the tree is %d nodes high", height)
	}
	return r.bnode(ctx, c, next, root, height)
}

func (r *run) bnode(ctx context.Context, c *boundClause, next int, node operand, height uint64) error {
	if err := r.step(); err != nil {
		return err
	}
	visit := func(i uint64) { r.slots[c.slot], r.slots[c.indexSlot] = node, operand{n: i} }
	visit(0)
	size, err := r.number(ctx, c.exprs[2])
	if err != nil {
		return err
	}
	for i := uint64(0); i <= size; i++ {
		visit(i)
		if height > 0 {
			child, err := c.exprs[3].eval(ctx, r)
			if err == nil {
				err = r.bnode(ctx, c, next, child, height-1)
			}
			if err != nil {
				return err
			}
			visit(i)
		}
		if i == size {
			break
		}
		if err := r.step(); err != nil {
			return err
		}
		if err := r.do(ctx, next); err != nil {
			return err
		}
	}
	return nil
}
