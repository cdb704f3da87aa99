// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"fmt"
	"math"
)

// layoutGap separates sections that are laid out, so that no address just before or behind one
// belongs to another.
const layoutGap = 1 << 12 // bytes

// LaidOut returns the object with distinct addresses for the sections that occupy memory, where
// it is relocatable and several of them have code: else all of them begin at 0, and an address
// alone does not identify a section. Section.Address is where each begins, and relocated contents
// have such addresses; relocations have yet to be set. Everything else is the same, and both share
// the file: closing the laid out object does nothing. It is the object itself where there are no
// sections to tell apart. It is made once: all users of the object have the same one.
//
// Objects whose sections have the same sizes and alignments have the same layout.
func (o *Object) LaidOut() (*Object, error) { return o.laid() }

func (o *Object) layOut() (*Object, error) {
	if !o.relocatable {
		return o, nil
	}
	code := 0
	for _, s := range o.sections {
		if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 {
			code++
		}
		if s.Address != 0 { // its writer laid it out
			return o, nil
		}
	}
	if code < 2 {
		return o, nil
	}
	laid, err := New(o.name, o.data)
	if err != nil {
		return nil, err
	}
	laid.laidOut, laid.mapping = true, o.mapping
	limit := uint64(math.MaxInt64)
	if !o.header.wide {
		limit = math.MaxUint32
	}
	next := uint64(layoutGap)
	for _, s := range laid.sections {
		if !s.Occupies() {
			continue
		}
		align := max(s.Align, layoutGap)
		if align&(align-1) != 0 {
			align = layoutGap // of no file that a compiler wrote
		}
		if align > limit || s.Size > limit || next > limit-align || (next+align-1)&^(align-1) > limit-s.Size {
			return nil, fmt.Errorf("%s: section %s (%d): %#x bytes at %#x do not fit into the address space, expected sections of at most %#x bytes in all",
				o.name, s.Name, s.Index, s.Size, next, limit)
		}
		s.Address = (next + align - 1) &^ (align - 1)
		next = s.Address + s.Size
		if next > limit-layoutGap {
			next = limit
		} else {
			next += layoutGap
		}
	}
	o.laidAs.Store(laid)
	return laid, nil
}

// Occupies reports whether a section occupies memory.
func (s *Section) Occupies() bool { return s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 }
