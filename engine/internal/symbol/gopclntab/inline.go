// SPDX-License-Identifier: Apache-2.0

package gopclntab

// call is an inlined call.
type call struct {
	name   int32
	parent int32 // an instruction at the position of the call, as an offset from the function's start
	line   int32 // of the declaration; 0: unknown
}

// callLayout is the layout of a call in a tree (runtime.inlinedCall): its size, and the
// offsets of members of four bytes.
type callLayout struct {
	size, name, parent int
	line               int // 0: it has none
	zero               int // a byte of padding
}

// callLayouts maps the table's magic number to its layout of calls.
var callLayouts = map[uint32]callLayout{
	magic118: {size: 20, name: 12, parent: 16, zero: 3},
	magic120: {size: 16, name: 4, parent: 8, line: 12, zero: 1},
}

// Bounds on what verifying trees costs.
const (
	maxVerified      = 1 << 10 // functions
	maxVerifiedSteps = 1 << 20 // of their tables
)

// noTree is the offset of a missing tree.
const noTree = ^uint32(0)

// tree returns the inlined calls of a function from the bytes that funcdata offsets count
// from; nil where there are none, or where they are unknown.
func (t *Table) tree(gofunc []byte, f *function) []byte {
	off := t.treeOffset(f)
	if uint64(off) >= uint64(len(gofunc)) {
		return nil
	}
	return gofunc[off:]
}

// treeOffset is the offset of a function's tree; noTree where it has none.
func (t *Table) treeOffset(f *function) uint32 {
	offset := 4 * (uint64(f.npcdata) + funcdataInlTree)
	if f.nfuncdata <= funcdataInlTree || offset+4 > uint64(len(f.rest)) {
		return noTree
	}
	return t.order.Uint32(f.rest[offset:])
}

// inlineTable is the table of a function's innermost inlined calls; 0 where it has none.
func (t *Table) inlineTable(f *function) uint32 {
	if _, known := callLayouts[t.magic]; !known || f.npcdata <= pcdataInlTree || len(f.rest) < 4*(pcdataInlTree+1) {
		return 0
	}
	return t.order.Uint32(f.rest[4*pcdataInlTree:])
}

// inlinedCall is the number of the innermost inlined call at an address; negative where
// there is none.
func (t *Table) inlinedCall(f *function, address uint64) int {
	n, ok := t.value(f, t.inlineTable(f), address)
	if !ok {
		return -1
	}
	return int(n)
}

// call reads a call of a tree; ok is false where no valid call is there.
func (t *Table) call(tree []byte, n int, f *function) (c call, ok bool) {
	l := callLayouts[t.magic]
	if n < 0 || n >= len(tree)/l.size {
		return c, false
	}
	b := tree[n*l.size:]
	c = call{name: int32(t.order.Uint32(b[l.name:])), parent: int32(t.order.Uint32(b[l.parent:]))}
	if l.line != 0 {
		c.line = int32(t.order.Uint32(b[l.line:]))
	}
	isName := c.name >= 0 && int64(c.name) < int64(len(t.names)) && t.names[c.name] != 0 && (c.name == 0 || t.names[c.name-1] == 0)
	return c, isName && b[l.zero] == 0 && c.line >= 0 && c.parent >= 0 && uint64(c.parent) < f.end-f.start
}

// hasTrees reports whether gofunc has the trees of functions from all over the table, at
// the offsets that count from its first byte. Zeros would read as calls of the function
// with the first name, so most calls must have other names.
func (t *Table) hasTrees(gofunc []byte) bool {
	steps, trees, named := 0, 0, 0
	for n := 0; n < t.nfunc && trees < maxVerified; n += 1 + t.nfunc/(8*maxVerified) {
		f, err := t.function(n)
		if err != nil || t.treeOffset(&f) == noTree {
			continue
		}
		tree := t.tree(gofunc, &f)
		last := int32(-1)
		for r := range t.values(&f, t.inlineTable(&f)) {
			last = max(last, r.value)
			steps++
		}
		if last < 0 {
			continue
		}
		name := int32(0)
		for i := int32(0); i <= last; i, steps = i+1, steps+1 {
			c, ok := t.call(tree, int(i), &f)
			if !ok || steps > maxVerifiedSteps {
				return false
			}
			name = max(name, c.name)
		}
		if trees++; name != 0 {
			named++
		}
	}
	return named > trees/2
}
