package engine

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

// placeSegments sets the addresses of the module's segments. It is called once,
// before anything else of the module is used.
func (m *module) placeSegments() {
	m.laid, m.placed = m.Object, m.Segments
	if m.Object == nil || m.Object.Type() != elf.ET_REL {
		return
	}
	laid, err := m.Object.LaidOut()
	if err != nil {
		m.problem("%v: nothing is said of its addresses", err)
		m.placed = nil
		return
	}
	if m.laid = laid; !m.isLaid() {
		return
	}
	m.placed = nil
	for _, s := range m.Segments {
		section, err := sectionOf(laid, &s)
		if err != nil {
			m.problem("%v", err)
			continue
		}
		if s.Address >= section.Size {
			m.problem("%s: a segment at %#x of section %s, which has %#x bytes", laid.Name(), s.Address, section.Name, section.Size)
			continue
		}
		// Memory is mapped by pages: what follows the section is not its own.
		s.Size = min(s.Size, section.Size-s.Address)
		s.Address += section.Address
		m.placed = append(m.placed, s)
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

// isLaid says whether the module's addresses are those of a layout.
func (m *module) isLaid() bool { return m.laid != m.Object }

// base is where the section begins that holds an address of the layout; 0 where
// there is no layout.
func (m *module) base(address uint64) uint64 {
	if m.isLaid() {
		for _, s := range m.laid.Sections() {
			if s.Occupies() && address >= s.Address && address-s.Address <= s.Size {
				return s.Address
			}
		}
	}
	return 0
}

// offset is an address as stacks have it: an ELF virtual address of the file.
func (m *module) offset(address uint64) uint64 { return address - m.base(address) }

// Start returns where an address of the module is in the target.
func (m *module) Start(address uint64) (uint64, bool) {
	for i := range m.placed {
		if s := &m.placed[i]; address-s.Address < s.Size {
			return address - s.Address + s.Start, true
		}
	}
	return 0, false
}

// sectionBase is where the section begins that an answer of the plugin, of some
// kind, is of. It is false, and a problem, where that is not known: the answer
// does not say which of several it is.
func (m *module) sectionBase(index uint32, kind string) (uint64, bool) {
	if !m.isLaid() {
		return 0, true
	}
	if index == 0 {
		m.problem("%s: %s of the architecture are of no section of the relocatable object: they are not used", m.Object.Name(), kind)
		return 0, false
	}
	return m.laid.Sections()[index].Address, true // checked: it is one of those that the plugin was told
}

// takeRows adds the rows of a table of the plugin.
func (m *module) takeRows(into []cfi.Row, t *sdk.RowTable) []cfi.Row {
	base, ok := m.sectionBase(t.Section, "rows")
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
func (m *module) takeFunctions(list []sdk.Function) {
	m.ruled = m.ruled[:0]
	for _, f := range list {
		base, ok := m.sectionBase(f.Section, "functions")
		if !ok {
			continue
		}
		f.Start, f.End = f.Start+base, f.End+base
		m.ruled = append(m.ruled, f)
	}
	sort.SliceStable(m.ruled, func(i, j int) bool { return m.ruled[i].Start < m.ruled[j].Start })
}

// laidLike is a debug file with the layout of the module's object. err says why it
// has another.
func (m *module) laidLike(debug *object.Object) (*object.Object, error) {
	if debug == nil || !m.isLaid() {
		return debug, nil
	}
	laid, err := debug.LaidOut()
	if err != nil {
		return nil, err
	}
	var of [2][]uint64
	for i, o := range []*object.Object{m.laid, laid} {
		for _, s := range o.Sections() {
			if s.Occupies() {
				of[i] = append(of[i], s.Address, s.Size)
			}
		}
	}
	for i := range max(len(of[0]), len(of[1])) {
		if i >= len(of[0]) || i >= len(of[1]) || of[0][i] != of[1][i] {
			return nil, fmt.Errorf("%s: its sections are not those of %s: it is not used", debug.Name(), m.Object.Name())
		}
	}
	return laid, nil
}
