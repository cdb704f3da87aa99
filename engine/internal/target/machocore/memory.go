// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/target"
)

// le is the byte order of all cores that are read.
var le = binary.LittleEndian

// part is a range of memory, of which the core has the first bytes.
type part struct {
	start, size uint64
	data        []byte
	protection  uint32
}

// memory is the address space of the process: its ranges by address, without overlap.
type memory []part

// newMemory makes the address space of the core's segments. Of two that overlap the one that begins earlier
// has the bytes.
func (c *Core) newMemory() memory {
	var list memory
	cut, first := 0, uint64(0)
	for _, s := range c.file.Segments() {
		if s.MemSize == 0 {
			continue
		}
		p := part{start: s.Address, size: s.MemSize, protection: s.Protection}
		want, have := min(s.FileSize, s.MemSize), uint64(len(c.data))-min(s.Offset, uint64(len(c.data)))
		if want > have {
			if cut++; cut == 1 {
				first = s.Address
			}
			want = have
		}
		if want > 0 {
			p.data = c.data[s.Offset : s.Offset+want]
		}
		list = append(list, p)
	}
	if cut > 0 {
		c.problem("%d ranges of memory are not whole in the file of %d bytes, the first at address %#x", cut, len(c.data), first)
	}
	slices.SortStableFunc(list, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	return list.disjoint()
}

// disjoint removes what ranges share with those before them.
func (m memory) disjoint() memory {
	kept := m[:0]
	for _, p := range m {
		if n := len(kept); n > 0 && p.start-kept[n-1].start < kept[n-1].size {
			skip := kept[n-1].size - (p.start - kept[n-1].start)
			if skip >= p.size {
				continue
			}
			p.start, p.size, p.data = p.start+skip, p.size-skip, p.data[min(skip, uint64(len(p.data))):]
		}
		kept = append(kept, p)
	}
	return kept
}

// find returns the index of the range that has an address; ok is false where none has: the index is that of
// the next one.
func (m memory) find(address uint64) (i int, ok bool) {
	i = sort.Search(len(m), func(i int) bool { return m[i].start > address })
	if i > 0 && address-m[i-1].start < m[i-1].size {
		return i - 1, true
	}
	return i, false
}

// at returns the bytes from an address on; next is the address where the following range begins.
func (m memory) at(address uint64) (b []byte, next uint64) {
	i, ok := m.find(address)
	if !ok {
		next = ^uint64(0)
		if i < len(m) {
			next = m[i].start
		}
		return nil, next
	}
	if skip := address - m[i].start; skip < uint64(len(m[i].data)) {
		b = m[i].data[skip:]
	}
	next = ^uint64(0)
	if i+1 < len(m) {
		next = m[i+1].start
	}
	return b, next
}

// read returns n bytes at an address, which may alias the core; fewer where the core lacks some.
func (m memory) read(address, n uint64) []byte {
	b, _ := m.at(address)
	if n <= uint64(len(b)) {
		return b[:n:n]
	}
	whole := slices.Clone(b)
	for uint64(len(whole)) < n && len(b) > 0 {
		next := address + uint64(len(whole))
		if next < address {
			break
		}
		b, _ = m.at(next)
		whole = append(whole, b[:min(uint64(len(b)), n-uint64(len(whole)))]...)
	}
	return whole
}

// maxPath bounds the paths of images (PATH_MAX of macOS is 1024).
const maxPath = 4096

// text returns the string at an address, up to a NUL; "" where there is none.
func (m memory) text(address uint64) string { return cString(m.read(address, maxPath)) }

// cString returns a text that ends with a NUL; "" where there is none.
func cString(b []byte) string {
	if text, _, ok := bytes.Cut(b, []byte{0}); ok {
		return string(text)
	}
	return ""
}

// Mapped reports whether an address was mapped, and whether code may be executed there, as far as the core
// and the headers of images have it.
func (c *Core) Mapped(address uint64) (mapped, executable bool) {
	if i, ok := c.memory.find(address); ok {
		return true, c.memory[i].protection&macho.CanExecute != 0
	}
	for _, m := range c.modules {
		for i := range m.Segments {
			if s := &m.Segments[i]; address-s.Start < s.Size {
				return true, s.Executable
			}
		}
	}
	return false, false
}

// Around returns the ranges of memory around an address.
func (c *Core) Around(address uint64) (below, within, above *target.Mapping) {
	bounds := func(i int) (start, end uint64) { return c.memory[i].start, c.memory[i].start + c.memory[i].size }
	return target.MappingsAround(len(c.memory), bounds, c.mappingOf, address)
}

func (c *Core) mappingOf(i int) *target.Mapping {
	p := &c.memory[i]
	m := &target.Mapping{
		Start: p.start, End: p.start + p.size, IsReadable: p.protection&macho.CanRead != 0,
		IsWritable: p.protection&macho.CanWrite != 0, IsExecutable: p.protection&macho.CanExecute != 0,
	}
	for _, module := range c.modules {
		for k := range module.Segments {
			if s := &module.Segments[k]; p.start-s.Start < s.Size {
				m.File, m.Offset = module.Path, p.start-module.Base
				return m
			}
		}
	}
	return m
}
