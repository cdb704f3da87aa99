// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// Mapping is a range of addresses of a process, or of the kernel, and the file mapped
// there.
type Mapping struct {
	Start, End uint64
	// Offset is the offset of Start in the file. For the kernel itself it is the address
	// of the symbol whose name follows the bracket in Path.
	Offset uint64
	Path   string
	// BuildID is the build ID of the MMAP2 record, else of the header for this path;
	// nil where neither has it.
	BuildID []byte
	// Prot and Flags are as in mmap(2); of MMAP records only PROT_EXEC is known.
	Prot, Flags  uint32
	Executable   bool
	Major, Minor uint32 // of the device; 0 like Inode where the record has a build ID instead
	Inode        uint64
	// PID is the process that made the mapping, of which others have it by a fork.
	PID int
	// IsEarlier is true where perf found it when the recording began, or by no known time.
	IsEarlier bool
	// Generation tells apart files that had the inode one after the other; 0: not known.
	Generation uint64
	// Replaced is the executable part of a file that a mapping without a file replaced
	// at the same addresses; else nil.
	Replaced *Mapping
}

// HasNoFile reports whether a mapping has no file on disk: the kernel gave it a name, or its
// file is memory.
func (m *Mapping) HasNoFile() bool { return IsMemory(m.Path) }

// memoryNames are the beginnings of the names that the kernel and perf give to memory without a
// file on disk. " (deleted)" may follow.
var memoryNames = [...]string{"[", "//anon", "anon_inode:", MemFile, "/dev/zero", "/SYSV", "/anon_hugepage"}

// MemFile is how the name of a file in memory begins (memfd_create(2)).
const MemFile = "/memfd:"

// IsMemory reports whether the path of a mapping is the name of memory without a file on disk:
// of private or shared memory, in huge pages or not, of heaps and stacks, or with a name that
// the program gave it ([anon:NAME]).
func IsMemory(path string) bool {
	return path == "" || path != object.VDSOName && slices.ContainsFunc(memoryNames[:], func(name string) bool { return strings.HasPrefix(path, name) })
}

// isSameMemory reports whether a mapping at the same addresses is of the same shared memory.
func (m *Mapping) isSameMemory(other *Mapping) bool {
	return m.Inode != 0 && m.Inode == other.Inode && m.Major == other.Major && m.Minor == other.Minor && m.Offset+other.Start-m.Start == other.Offset
}

// replaced returns the executable part of a file that a mapping is about to replace.
func (n *node) replaced(m *Mapping) *Mapping {
	old := (&Space{root: n}).Find(m.Start)
	switch {
	case old == nil || old.End < m.End:
		return nil
	case old.HasNoFile():
		old = old.Replaced
	case !old.Executable:
		return nil
	}
	if old == nil {
		return nil
	}
	part := *old
	part.Offset += m.Start - old.Start
	part.Start, part.End = m.Start, m.End
	return &part
}

// Space is one version of the mappings of a process. It does not change; the samples
// of a version share it.
type Space struct {
	PID int
	// ID is unique among the versions of all processes of a Reader.
	ID uint64
	// Code is the ID of the first version that has the same executable mappings.
	Code uint64
	// Root is the process's directory of File.SetRoots; "" where it has none.
	Root string
	// Ancestors are the processes that it was forked by since the last exec, the nearest first,
	// at most maxLineage of them.
	Ancestors []int
	// Namespace is the inode of its PID namespace, where that was recorded; else 0.
	Namespace uint64
	root      *node
}

// Find returns the mapping that contains an address; nil where there is none.
func (s *Space) Find(address uint64) *Mapping {
	if s == nil {
		return nil
	}
	for n := s.root; n != nil; {
		switch m := n.mapping; {
		case address < m.Start:
			n = n.left
		case address < m.End:
			return m
		default:
			n = n.right
		}
	}
	return nil
}

// All yields the mappings by address.
func (s *Space) All() iter.Seq[*Mapping] {
	return func(yield func(*Mapping) bool) {
		if s != nil {
			s.root.each(yield)
		}
	}
}

// node is a node of a treap, a search tree by Start that is a heap by priority. Nodes
// do not change: an insertion or removal makes new ones along the path, so that
// versions share the rest. The priorities are random, so that no file can make the
// tree deep.
type node struct {
	mapping     *Mapping
	priority    uint64
	left, right *node
	size        int
}

var prioritySeed = maphash.MakeSeed()

func newNode(m *Mapping) *node {
	return &node{mapping: m, priority: maphash.Comparable(prioritySeed, m.Start), size: 1}
}

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *node) each(yield func(*Mapping) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.mapping) && n.right.each(yield)
}

// withChildren returns a copy with other children.
func (n *node) withChildren(left, right *node) *node {
	return &node{n.mapping, n.priority, left, right, left.len() + right.len() + 1}
}

// split separates the mappings that begin below an address from the others.
func (n *node) split(address uint64) (below, rest *node) {
	if n == nil {
		return nil, nil
	}
	if n.mapping.Start < address {
		below, rest = n.right.split(address)
		return n.withChildren(n.left, below), rest
	}
	below, rest = n.left.split(address)
	return below, n.withChildren(rest, n.right)
}

// merge joins two trees; all of a is below all of b.
func merge(a, b *node) *node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		return a.withChildren(a.left, merge(a.right, b))
	}
	return b.withChildren(merge(a, b.left), b.right)
}

func (n *node) last() *Mapping {
	if n == nil {
		return nil
	}
	for n.right != nil {
		n = n.right
	}
	return n.mapping
}

// insert maps m over the mappings there, parts of which may stay before and after
// it. code reports whether executable mappings changed.
func (n *node) insert(m *Mapping) (root *node, code bool) {
	below, rest, code := n.clear(m.Start, m.End)
	return merge(merge(below, newNode(m)), rest), code || m.Executable
}

// clear removes a range; below and rest are the trees on both sides of it.
func (n *node) clear(start, end uint64) (below, rest *node, code bool) {
	below, rest = n.split(start)
	var inside *node
	inside, rest = rest.split(end)
	over := inside.last()
	inside.each(func(m *Mapping) bool {
		code = code || m.Executable
		return !code
	})
	if m := below.last(); m != nil && m.End > start {
		code = code || m.Executable
		below, _ = below.split(m.Start)
		before := *m
		before.End = start
		below = merge(below, newNode(&before))
		if over == nil {
			over = m
		}
	}
	if over != nil && over.End > end {
		after := *over
		after.Start = end
		after.Offset += end - over.Start
		rest = merge(newNode(&after), rest)
	}
	return below, rest, code
}
