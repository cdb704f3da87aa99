// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// spaces are the entries of a unit that functions may be declared in, as far as needed so
// far: the spaces inside one of them are read when a declaration is in it.
type spaces struct {
	mu   sync.Mutex
	list []space // the first one is the unit
}

// space is a namespace, a class, a function, or a block of one. Offsets count from the
// unit's header.
type space struct {
	offset, first, end uint32 // of the entry, of its children, and of the entry behind them
	inside, count      int32  // the spaces directly inside it, by offset; count -1: not read yet
	tag                dw.Tag
}

// isSpace reports whether functions may be declared in an entry.
func isSpace(tag dw.Tag) bool {
	switch tag {
	case dw.TagNamespace, dw.TagClassType, dw.TagStructureType, dw.TagUnionType, dw.TagEnumerationType, dw.TagSubprogram, dw.TagInlinedSubroutine, dw.TagLexicalBlock, dw.TagModule:
		return true
	}
	return false
}

// spacesAround returns the spaces around an entry, the outermost first, without the unit;
// where they nest deeper than maxSpaces, the outer ones.
func (b *body) spacesAround(off uint32) (list []uint32, tags []dw.Tag, err error) {
	x := &b.spaces
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		w := b.walk(b.first)
		a, entry, err := w.next()
		if a == nil || err != nil {
			return nil, nil, err
		}
		if err := w.pass(a, entry); err != nil {
			return nil, nil, err
		}
		x.list = []space{{first: uint32(w.off - b.offset), end: uint32(b.end - b.offset), count: -1}}
	}
	for k := int32(0); len(list) < maxSpaces; {
		if x.list[k].count < 0 {
			if err := b.lookInside(x, k); err != nil {
				return nil, nil, err
			}
		}
		s := &x.list[k]
		inside := x.list[s.inside : s.inside+s.count]
		i := sort.Search(len(inside), func(i int) bool { return inside[i].first > off }) - 1
		if i < 0 || off >= inside[i].end {
			break
		}
		k = s.inside + int32(i)
		list = append(list, inside[i].offset)
		tags = append(tags, inside[i].tag)
	}
	return list, tags, nil
}

// lookInside finds the spaces directly inside one.
func (b *body) lookInside(x *spaces, index int32) error {
	w := b.walk(b.offset + uint64(x.list[index].first))
	first := len(x.list)
	end := b.offset + uint64(x.list[index].end)
	for w.off < end {
		a, entry, err := w.next()
		if err != nil {
			return err
		}
		if a == nil {
			break
		}
		s := space{offset: uint32(entry - b.offset), count: -1, tag: a.tag}
		next := uint64(0)
		if a.hasChildren {
			next = w.sibling(a)
		}
		if next == 0 || isSpace(a.tag) {
			if err := w.pass(a, entry); err != nil {
				return err
			}
		}
		if !a.hasChildren {
			continue
		}
		s.first = uint32(w.off - b.offset)
		if next == 0 {
			if err := w.passChildren(entry); err != nil {
				return err
			}
			next = w.off
		}
		w.off = next
		if s.end = uint32(next - b.offset); isSpace(a.tag) && s.end > s.first {
			x.list = append(x.list, s)
		}
	}
	b.file.addKept(sizeOf[space](len(x.list) - first))
	x.list[index].inside, x.list[index].count = int32(first), int32(len(x.list)-first)
	return nil
}

// passChildren skips the children of an entry.
func (w *walk) passChildren(entry uint64) error {
	for depth := 1; depth > 0 && w.off < uint64(len(w.info)); {
		a, child, err := w.next()
		if err != nil {
			return err
		}
		if a == nil {
			depth--
			continue
		}
		if next := w.sibling(a); next != 0 && a.hasChildren {
			w.off = next
			continue
		}
		if err := w.pass(a, child); err != nil {
			return err
		}
		if a.hasChildren {
			if depth++; depth > maxDepth {
				return w.wrong(entry, "entry nested deeper than %d", maxDepth)
			}
		}
	}
	return nil
}

// memorySpaces are the names of the memory spaces of source languages (heterogeneous
// extension, A.2.14), by their numbers.
var memorySpaces = [...]string{"", "global", "constant", "group", "private"}

// MemorySpace is DW_AT_LLVM_memory_space, of a variable (A.4.1) or of the target of a
// pointer or a reference type (A.5.3): the name without DW_MSPACE_LLVM_, or an unknown
// number; "" where there is none.
func (e Entry) MemorySpace() string {
	n, ok, err := e.Number(dw.AttrLLVMMemorySpace)
	if err != nil || !ok {
		return ""
	}
	if n >= 0 && n < int64(len(memorySpaces)) {
		return memorySpaces[n]
	}
	return fmt.Sprintf("%#x", uint64(n))
}
