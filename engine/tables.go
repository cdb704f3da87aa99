package engine

import (
	"debug/elf"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
)

// A frameTable is a section of call frame information.
type frameTable struct {
	*cfi.Table
	section string
	err     error // why there is no Table
	header  error // why .eh_frame_hdr is not used
}

// frameTables opens the .eh_frame and .debug_frame of an object.
func frameTables(o *object.Object) []frameTable {
	var tables []frameTable
	if data, address, ok := o.EHFrame(); ok {
		eh := cfi.Section{Name: ".eh_frame", Data: data, Address: address, EH: true}
		if text := o.Section(".text"); text != nil {
			eh.Text = text.Address
		}
		data, address, ok := o.EHFrameHeader()
		if ok {
			eh.DataBase = address
		}
		t := newFrameTable(o, eh)
		if ok && t.err == nil {
			header := inObject(o, cfi.Section{Name: ".eh_frame_hdr", Data: data, Address: address, DataBase: address, EH: true})
			if err := t.UseHeader(header); err != nil {
				t.header = fmt.Errorf("%s: %w", o.Name(), err)
			}
		}
		tables = append(tables, t)
	}
	s := o.Section(".debug_frame") // or .zdebug_frame
	if s == nil || s.Type == elf.SHT_NOBITS {
		return tables
	}
	data, err := s.Data()
	switch {
	case err != nil:
		tables = append(tables, frameTable{section: ".debug_frame", err: err})
	case len(data) > 0:
		tables = append(tables, newFrameTable(o, cfi.Section{Name: ".debug_frame", Data: data, Address: s.Address}))
	}
	return tables
}

func newFrameTable(o *object.Object, s cfi.Section) frameTable {
	t, err := cfi.NewTable(inObject(o, s))
	if err != nil {
		err = fmt.Errorf("%s: %w", o.Name(), err)
	}
	return frameTable{Table: t, section: s.Name, err: err}
}

// inObject gives a section the properties of its object.
func inObject(o *object.Object, s cfi.Section) cfi.Section {
	s.Order, s.AddressSize = o.ByteOrder(), o.AddressSize()
	return s
}
