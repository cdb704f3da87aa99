// SPDX-License-Identifier: Apache-2.0

package code

import (
	"debug/elf"
	"fmt"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file has the addresses of relocatable objects. Their sections all begin at
// address 0, and each may be loaded by itself. Where several have code, they are
// laid out: whatever of the module counts in addresses of the layout, inside. What
// comes from the target, from plugins, or goes into a stack counts from where the
// section begins.

// lay sets the addresses that the object has inside. It is called once, before
// anything else of the object is used.
func (o *Object) lay() {
	o.laid = o.File
	if o.File == nil || o.File.Type() != elf.ET_REL {
		return
	}
	laid, err := o.File.LaidOut()
	if err != nil {
		o.layProblem = err
		return
	}
	o.laid = laid
}

// place sets the addresses of the module's segments, likewise.
func (m *Module) place() {
	o := m.Code
	if o.module == nil && o.key.file == nil {
		o.module = m
	}
	m.Placed = m.Segments
	switch {
	case o.layProblem != nil:
		m.problem("%v: nothing is said of its addresses", o.layProblem)
		m.Placed = nil
		return
	case !o.isLaid():
		return
	}
	m.Placed = nil
	for _, s := range m.Segments {
		section, err := sectionOf(o.laid, &s)
		if err != nil {
			m.problem("%v", err)
			continue
		}
		if s.Address >= section.Size {
			m.problem("%s: a segment at %#x of section %s, which has %#x bytes", o.laid.Name(), s.Address, section.Name, section.Size)
			continue
		}
		// Memory is mapped by pages: what follows the section is not its own.
		s.Size = min(s.Size, section.Size-s.Address)
		s.Address += section.Address
		m.Placed = append(m.Placed, s)
	}
}

// sectionOf is the section that a segment is of.
func sectionOf(o *object.Object, segment *target.Segment) (found *object.Section, err error) {
	for _, s := range o.Sections() {
		if !s.Occupies() || segment.Executable != (s.Flags&elf.SHF_EXECINSTR != 0) || segment.Section != "" && s.Name != segment.Section {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s: sections %d and %d of the relocatable object could be what is loaded at %#x: nothing is said of its addresses", o.Name(), found.Index, s.Index, segment.Start)
		}
		found = s
	}
	if found == nil {
		return nil, fmt.Errorf("%s: no section of the relocatable object that is called %q is what is loaded at %#x: nothing is said of its addresses", o.Name(), segment.Section, segment.Start)
	}
	return found, nil
}

// isLaid says whether the object's addresses are those of a layout.
func (o *Object) isLaid() bool { return o.laid != o.File }

// base is where the section begins that holds an address of the layout; 0 where
// there is no layout.
func (o *Object) base(address uint64) uint64 {
	if o.isLaid() {
		for _, s := range o.laid.Sections() {
			if s.Occupies() && address >= s.Address && address-s.Address <= s.Size {
				return s.Address
			}
		}
	}
	return 0
}

// Offset is an address of the object as stacks have it: an ELF virtual address of
// the file.
func (o *Object) Offset(address uint64) uint64 { return address - o.base(address) }

// sectionBase is where the section begins that an answer of the plugin, of some
// kind, is of. It is false, and a problem, where that is not known: the answer
// does not say which of several it is.
func (o *Object) sectionBase(index uint32, kind string) (uint64, bool) {
	if !o.isLaid() {
		return 0, true
	}
	if index == 0 {
		o.problem("%s: %s of the architecture are of no section of the relocatable object: they are not used", o.File.Name(), kind)
		return 0, false
	}
	return o.laid.Sections()[index].Address, true // checked: it is one of those that the plugin was told
}

// takeRows adds the rows of a table of the plugin.
func (o *Object) takeRows(into []cfi.Row, t *sdk.RowTable) []cfi.Row {
	base, ok := o.sectionBase(t.Section, "rows")
	if !ok {
		return into
	}
	for i := range t.Rows {
		row := t.Rows[i]
		row.Start, row.End = row.Start+base, row.End+base
		into = append(into, row)
	}
	return into
}

// takeFunctions takes what the plugin said of functions, by start.
func (o *Object) takeFunctions(list []sdk.Function) {
	o.functions = o.functions[:0]
	for _, f := range list {
		base, ok := o.sectionBase(f.Section, "functions")
		if !ok {
			continue
		}
		f.Start, f.End = f.Start+base, f.End+base
		o.functions = append(o.functions, f)
	}
	sort.SliceStable(o.functions, func(i, j int) bool { return o.functions[i].Start < o.functions[j].Start })
}

// laidLike is a debug file with the layout of the object. err says why it
// has another.
func (o *Object) laidLike(debug *object.Object) (*object.Object, error) {
	if debug == nil || !o.isLaid() {
		return debug, nil
	}
	laid, err := debug.LaidOut()
	if err != nil {
		return nil, err
	}
	var of [2][]uint64
	for i, f := range []*object.Object{o.laid, laid} {
		for _, s := range f.Sections() {
			if s.Occupies() {
				of[i] = append(of[i], s.Address, s.Size)
			}
		}
	}
	for i := range max(len(of[0]), len(of[1])) {
		if i >= len(of[0]) || i >= len(of[1]) || of[0][i] != of[1][i] {
			return nil, fmt.Errorf("%s: its sections are not those of %s: it is not used", debug.Name(), o.File.Name())
		}
	}
	return laid, nil
}
