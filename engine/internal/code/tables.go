// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// A FrameTable is a section of call frame information.
type FrameTable struct {
	*cfi.Table
	Section string
	Size    int   // of the section, bytes
	Index   int   // of the section header; 0 where there is none
	Err     error // why there is no Table
	header  error // why .eh_frame_hdr is not used
}

// FrameTables opens the .eh_frame sections and the .debug_frame of an object.
func FrameTables(o *object.Object) []FrameTable { return frameTablesFor(o, anyCode) }

// anyCode stands for all code sections of a relocatable object.
const anyCode = 0

// loadedTables opens the tables of the object's file, or of its debug file; none without a file.
func (o *Object) loadedTables(file *object.Object) ([]FrameTable, error) {
	switch {
	case file == nil:
		return nil, nil
	case o.isLaid():
		return FrameTables(file), nil // an address is of one section
	}
	return LoadedTables(file, o.memory.segments)
}

// LoadedTables opens the tables of an object, or of its debug file, for the segments that are
// loaded. Each section of a relocatable object has addresses from 0 on, and an FDE is for one of
// them. err is why it is not known which FDEs are for the module's addresses.
func LoadedTables(o *object.Object, segments []trace.Segment) (tables []FrameTable, err error) {
	if !o.IsRelocatable() {
		return FrameTables(o), nil
	}
	code := anyCode
	for i := range segments {
		s := &segments[i]
		if !s.Executable {
			continue
		}
		if code != anyCode {
			return nil, fmt.Errorf("%s: several sections of code of a relocatable object are loaded: call frame information does not tell them apart by address", o.Name())
		}
		for _, section := range o.Sections() {
			switch {
			case section.Flags&elf.SHF_EXECINSTR == 0 || section.Size == 0 || s.Section != "" && section.Name != s.Section:
			case code != anyCode:
				return nil, fmt.Errorf("%s: sections %d and %d of the relocatable object could be what is loaded: whose call frame information holds is not known", o.Name(), code, section.Index)
			default:
				code = section.Index
			}
		}
		if code == anyCode {
			return nil, fmt.Errorf("%s: no section of code of the relocatable object is called %q: call frame information is of no address", o.Name(), s.Section)
		}
	}
	return frameTablesFor(o, uint32(code)), nil
}

// frameTablesFor opens the tables for one code section of a relocatable object.
func frameTablesFor(o *object.Object, code uint32) []FrameTable {
	var tables []FrameTable
	for _, eh := range o.EHFrames() {
		tables = append(tables, ehFrameTable(o, eh, code))
	}
	sections, left := o.SectionsNamed(".debug_frame", ".zdebug_frame") // a relocatable object may have several
	if left != nil {
		tables = append(tables, FrameTable{Section: ".debug_frame", Err: left})
	}
	for _, s := range sections {
		data, err := s.Data()
		switch {
		case err != nil:
			tables = append(tables, FrameTable{Section: ".debug_frame", Index: s.Index, Err: err})
		case len(data) > 0:
			tables = append(tables, newFrameTable(o, s, code, cfi.Section{Name: ".debug_frame", Data: data, Address: s.Address}))
		}
	}
	return tables
}

func ehFrameTable(o *object.Object, eh object.FrameSection, code uint32) FrameTable {
	if eh.Err != nil {
		t := FrameTable{Section: eh.Name, Err: eh.Err}
		if eh.Section != nil {
			t.Index = eh.Section.Index
		}
		return t
	}
	section := cfi.Section{Name: eh.Name, Data: eh.Data, Address: eh.Address, Open: eh.Open, EH: true, Memory: objectMemory(o)}
	if text := o.Section(".text"); text != nil {
		section.Text = text.Address
	}
	section.DataBase, _ = o.GlobalOffsetTable()
	data, address, ok := o.EHFrameHeader()
	t := newFrameTable(o, eh.Section, code, section)
	if ok && t.Err == nil {
		header := inObject(o, cfi.Section{Name: ".eh_frame_hdr", Data: data, Address: address, DataBase: address, EH: true})
		if err := t.UseHeader(header); err != nil {
			t.header = fmt.Errorf("%s: %w", o.Name(), err)
		}
	}
	return t
}

// newFrameTable makes the table of a section; header is nil where the object has no section
// headers.
func newFrameTable(o *object.Object, header *object.Section, code uint32, s cfi.Section) FrameTable {
	var err error
	if o.IsRelocatable() && header != nil {
		s.Code, err = codeOf(header, code)
	}
	var t *cfi.Table
	if err == nil {
		if t, err = cfi.NewTable(inObject(o, s)); err != nil {
			err = fmt.Errorf("%s: %w", o.Name(), err)
		}
	}
	index := 0
	if header != nil {
		index = header.Index
	}
	return FrameTable{Table: t, Section: s.Name, Size: len(s.Data), Index: index, Err: err}
}

// codeOf returns a function that finds the section of an address in a section of a relocatable
// object, by the relocation that made the address. Where code is a section, no other counts.
func codeOf(s *object.Section, code uint32) (func(offset uint64) (uint32, bool), error) {
	references, err := s.References()
	if err != nil {
		return nil, err
	}
	return func(offset uint64) (uint32, bool) {
		i, found := slices.BinarySearchFunc(references, offset, func(r object.Reference, offset uint64) int {
			return cmp.Compare(r.Offset, offset)
		})
		if !found {
			return 0, false
		}
		section := references[i].Section
		return section, code == anyCode || section == code
	}, nil
}

// objectMemory reads the targets of indirect pointers as far as the file has them: words that a
// dynamic linker has yet to write are not known.
func objectMemory(o *object.Object) func(dst []byte, address uint64) (int, error) {
	return func(dst []byte, address uint64) (n int, err error) { return o.ReadAddress(dst, address) }
}

// inObject sets the properties of a section's object.
func inObject(o *object.Object, s cfi.Section) cfi.Section {
	s.Order, s.AddressSize = o.ByteOrder(), o.AddressSize()
	return s
}
