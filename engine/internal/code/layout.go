// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// layout is the addresses that an object has inside; it is set when the object is made and
// never changes.
//
// The sections of relocatable objects all begin at address 0, and each may be loaded by
// itself. Where several have code, they are laid out: the module's own data counts in
// addresses of the layout. The target, plugins and stacks count from where the section begins.
type layout struct {
	laid     *object.Object // the file with the addresses of the layout; nil without a file
	isMoved  bool           // laid is not the file itself
	layError error          // why a relocatable object has no layout
}

func newLayout(file *object.Object) layout {
	if file == nil || !file.IsRelocatable() {
		return layout{laid: file}
	}
	laid, err := file.LaidOut()
	if err != nil {
		return layout{laid: file, layError: err}
	}
	return layout{laid: laid, isMoved: laid != file}
}

// isLaid reports whether the object's addresses belong to a layout.
func (l *layout) isLaid() bool { return l.isMoved }

// base returns where the section begins that contains an address of the layout; 0 where there
// is no layout.
func (l *layout) base(address uint64) uint64 {
	if l.isMoved {
		for _, s := range l.laid.Sections() {
			if s.Occupies() && address >= s.Address && address-s.Address <= s.Size {
				return s.Address
			}
		}
	}
	return 0
}

// Offset returns an address of the object as stacks have it: an ELF virtual address of the
// file.
func (l *layout) Offset(address uint64) uint64 { return address - l.base(address) }

// place sets the addresses of the module's segments. It is called once, before any other use
// of the module.
func (m *Module) place() {
	o := m.Code
	if o.memory.module == nil && o.key.file == nil {
		o.memory.module = m
	}
	m.Placed = m.Segments
	switch {
	case o.layError != nil:
		m.problem("%v: nothing is said of its addresses", o.layError)
		m.Placed = nil
		return
	case !o.isLaid():
		return
	}
	m.Placed = nil
	for _, s := range m.Segments {
		section, err := o.sectionOf(&s)
		if err != nil {
			m.problem("%v", err)
			continue
		}
		if s.Address >= section.Size {
			m.problem("%s: a segment at %#x of section %s, which has %#x bytes", o.laid.Name(), s.Address, section.Name, section.Size)
			continue
		}
		// Memory is mapped by pages: the section ends before its last page does.
		s.Size = min(s.Size, section.Size-s.Address)
		s.Address += section.Address
		m.Placed = append(m.Placed, s)
	}
}

// sectionOf finds the section that a segment was loaded from.
func (l *layout) sectionOf(segment *trace.Segment) (found *object.Section, err error) {
	for _, s := range l.laid.Sections() {
		if !s.Occupies() || segment.Executable != (s.Flags&elf.SHF_EXECINSTR != 0) || segment.Section != "" && s.Name != segment.Section {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s: sections %d and %d of the relocatable object could be what is loaded at %#x: nothing is said of its addresses", l.laid.Name(), found.Index, s.Index, segment.Start)
		}
		found = s
	}
	if found == nil {
		return nil, fmt.Errorf("%s: no section of the relocatable object that is called %q is what is loaded at %#x: nothing is said of its addresses", l.laid.Name(), segment.Section, segment.Start)
	}
	return found, nil
}

// laidLike returns a debug file with the layout of the object, or why it has another.
func (o *Object) laidLike(debug *object.Object) (*object.Object, error) {
	if debug == nil || !o.isLaid() {
		return debug, nil
	}
	laid, err := debug.LaidOut()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(occupied(o.laid), occupied(laid)) {
		return nil, fmt.Errorf("%s: its sections are not those of %s: it is not used", debug.Name(), o.File.Name())
	}
	return laid, nil
}

// occupied returns the addresses and sizes of the sections that occupy memory.
func occupied(o *object.Object) (list [][2]uint64) {
	for _, s := range o.Sections() {
		if s.Occupies() {
			list = append(list, [2]uint64{s.Address, s.Size})
		}
	}
	return list
}
