// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
)

// layout assigns distinct addresses to the sections of code of a relocatable object, each
// of which begins at address 0.
type layout struct {
	object   *object.Object
	sections []placed // in the file's order
}

// placed is a section of code with an address.
type placed struct {
	index int // of the section
	span
}

// sectionGap separates sections of a layout, so that the end of one is not the beginning of
// the next.
const sectionGap = 16

// newLayout lays out an object; nil where it is not relocatable, or is laid out already.
func newLayout(o *object.Object) *layout {
	if !o.IsRelocatable() {
		return nil
	}
	l := &layout{object: o}
	next, laid := uint64(0), false
	for _, s := range o.Sections() {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 || s.Size > 1<<31 {
			continue
		}
		// A section that begins elsewhere than at 0 has been laid out.
		if s.Address != 0 {
			laid = true
			continue
		}
		l.sections = append(l.sections, placed{s.Index, span{next, next + s.Size}})
		next += s.Size/sectionGap*sectionGap + 2*sectionGap
	}
	if laid && len(l.sections) == 0 {
		return nil
	}
	return l
}

// base is the address of a section.
func (l *layout) base(index uint32) (uint64, bool) {
	i, ok := slices.BinarySearchFunc(l.sections, int(index), func(p placed, index int) int { return p.index - index })
	if !ok {
		return 0, false
	}
	return l.sections[i].start, true
}

// place returns the section of code that an address is taken to be in: the first that is
// large enough.
func (l *layout) place(address uint64) (placed, bool) {
	for _, p := range l.sections {
		if address < p.end-p.start {
			return p, true
		}
	}
	return placed{}, false
}

// data reads a section, with its addresses of code converted to the layout.
func (l *layout) data(s *object.Section) ([]byte, error) {
	data, err := s.Data()
	if errors.Is(err, object.ErrNoData) {
		return nil, nil
	}
	if l == nil || err != nil || len(l.sections) < 2 {
		return data, err
	}
	references, err := s.References()
	if err != nil {
		return nil, err
	}
	owned := false
	size := uint64(l.object.AddressSize())
	for _, r := range references {
		base, ok := l.base(r.Section)
		if !ok || base == 0 || r.Offset > uint64(len(data)) || size > uint64(len(data))-r.Offset {
			continue
		}
		if !owned {
			data, owned = slices.Clone(data), true
		}
		add(l.object.ByteOrder(), data[r.Offset:r.Offset+size], base)
	}
	return data, nil
}

// add adds n to an address of 4 or 8 bytes.
func add(order binary.ByteOrder, b []byte, n uint64) {
	if len(b) == 4 {
		order.PutUint32(b, order.Uint32(b)+uint32(n))
		return
	}
	order.PutUint64(b, order.Uint64(b)+n)
}
