// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"bytes"
	"fmt"

	"github.com/unwindd/unwindd/internal/leb128"
)

// A trieWalk visits the nodes of a trie of exports. Each is visited once, so that circles end.
type trieWalk struct {
	trie    []byte
	base    uint64
	visited []uint64 // a bit for each offset
	count   int
	depth   int
	labels  int    // bytes of labels so far: those of nodes that do not overlap are no more than the trie's
	names   int    // bytes of the names of exports so far
	prefix  []byte // the labels that led to a node
	yield   func(Export)
}

// namesOfByte bounds the bytes of names by those of their trie: names share what they begin with.
const namesOfByte = 64

// maxTrieDepth bounds the nodes above each other; a name of a function rarely passes a hundred.
const maxTrieDepth = 1 << 12

// node visits the node at an offset.
func (w *trieWalk) node(offset uint64) error {
	switch {
	case offset >= uint64(len(w.trie)):
		return fmt.Errorf("node at %#x: the trie has %#x bytes", offset, len(w.trie))
	case w.visited[offset/64]>>(offset%64)&1 != 0:
		return fmt.Errorf("node at %#x is reached twice", offset)
	case w.depth == maxTrieDepth:
		return fmt.Errorf("node at %#x is beneath %d others", offset, w.depth)
	}
	w.visited[offset/64] |= 1 << (offset % 64)
	b := w.trie[offset:]
	size, n, err := leb128.Unsigned(b, 0)
	if err != nil || size > uint64(len(b)-n) {
		return fmt.Errorf("node at %#x: its size is not that of bytes of the trie", offset)
	}
	own, b := b[n:uint64(n)+size], b[uint64(n)+size:] //nolint:gosec // not negative
	if size > 0 {
		if err := w.export(own); err != nil {
			return fmt.Errorf("node at %#x: %w", offset, err)
		}
	}
	if len(b) == 0 {
		return fmt.Errorf("node at %#x: it ends before the number of its children", offset)
	}
	children := int(b[0])
	b = b[1:]
	w.depth++
	defer func() { w.depth-- }()
	length := len(w.prefix)
	for range children {
		label, _, ok := bytes.Cut(b[:min(len(b), maxExportName)], []byte{0})
		if !ok || length+len(label) > maxExportName {
			return fmt.Errorf("node at %#x: a label does not end, or its name takes more than %d bytes", offset, maxExportName)
		}
		if w.labels += len(label); w.labels > len(w.trie) {
			return fmt.Errorf("node at %#x: the labels up to it have more bytes than the trie, %d", offset, len(w.trie))
		}
		b = b[len(label)+1:]
		child, n, err := leb128.Unsigned(b, 0)
		if err != nil {
			return fmt.Errorf("node at %#x: a child: %w", offset, err)
		}
		b = b[n:]
		w.prefix = append(w.prefix[:length], label...)
		if err := w.node(child); err != nil {
			return err
		}
	}
	return nil
}

// export yields the export of a node.
func (w *trieWalk) export(b []byte) error {
	flags, n, err := leb128.Unsigned(b, 0)
	if err != nil {
		return err
	}
	if flags&reexport != 0 || flags&kindMask == kindAbsolute {
		return nil
	}
	value, _, err := leb128.Unsigned(b, n)
	if err != nil {
		return err
	}
	if w.count++; w.count > maxExports {
		return fmt.Errorf("more than %d exports", maxExports)
	}
	if w.names += len(w.prefix); w.names > namesOfByte*len(w.trie)+maxExportName {
		return fmt.Errorf("the names of %d exports have %d bytes, and the trie %d", w.count, w.names, len(w.trie))
	}
	w.yield(Export{Name: string(w.prefix), Address: w.base + value})
	return nil
}

// FunctionStarts returns the virtual addresses at which functions begin, sorted (LC_FUNCTION_STARTS);
// none where the file has no such table. With an error come those before it.
func (f *File) FunctionStarts() (list []uint64, err error) {
	text := f.Text()
	if f.starts.size == 0 || text == nil {
		return nil, nil
	}
	b, err := f.bytes(f.starts, "the starts of functions")
	if err != nil {
		return nil, err
	}
	for address := text.Address; len(b) > 0; {
		delta, n, err := leb128.Unsigned(b, 0)
		if err != nil {
			return list, fmt.Errorf("%s: the starts of functions at offset %#x: %w", f.name, f.starts.offset, err)
		}
		if delta == 0 { // what follows fills the table up
			return list, nil
		}
		if address+delta < address {
			return list, fmt.Errorf("%s: the starts of functions at offset %#x: %#x behind %#x is no address", f.name, f.starts.offset, delta, address)
		}
		address, b = address+delta, b[n:]
		list = append(list, address)
	}
	return list, nil
}
