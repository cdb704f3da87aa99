// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"fmt"
)

// encoder writes a stream field by field, as the specification lists them.
type encoder struct {
	b      []byte
	fields []field
	object string
}

// field is where something was written.
type field struct {
	object, name string
	kind         string // "name", "count", "enum", "number", "register" or "location"
	offset       int
	size         int // bytes
	largest      int // of an enum; of a count, the least bytes of an element
}

func (e *encoder) mark(kind, name string, size, largest int) {
	e.fields = append(e.fields, field{e.object, name, kind, len(e.b), size, largest})
}

func (e *encoder) u8(v uint8)   { e.b = append(e.b, v) }
func (e *encoder) u16(v uint16) { e.b = binary.LittleEndian.AppendUint16(e.b, v) }
func (e *encoder) u32(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }

// count writes how many elements of at least so many bytes follow.
func (e *encoder) count(name string, size, n, least int) {
	e.number("count", name, size, uint32(n))
	e.fields[len(e.fields)-1].largest = least
}

// number writes a field of 2 or 4 bytes.
func (e *encoder) number(kind, name string, size int, v uint32) {
	e.mark(kind, name, size, 0)
	if size == 2 {
		e.u16(uint16(v))
	} else {
		e.u32(v)
	}
}

func (e *encoder) enum(name string, v uint8, largest int) {
	e.mark("enum", name, 1, largest)
	e.u8(v)
}

func (e *encoder) name(at, s string) {
	e.mark("name", at, 2+len(s), 0)
	e.u16(uint16(len(s)))
	e.b = append(e.b, s...)
}

// encode writes a stream in its layout.
func encode(s *Stream) *encoder {
	e := &encoder{}
	e.u32(Magic)
	e.count("objects", 2, len(s.Objects), 29) // of layout A, the smallest
	for i := range s.Objects {
		e.object = fmt.Sprint(i)
		e.stackObject(s.Layout, &s.Objects[i])
	}
	return e
}

func (e *encoder) stackObject(layout Layout, o *Object) {
	e.name("name", o.Name)
	if o.Name != "" {
		e.object += fmt.Sprintf(" (%q)", o.Name)
	}
	e.number("number", "reloc_offset", 4, o.RelocOffset)
	e.mappings("offset_map", o.OffsetMap)
	e.mappings("index_map", o.IndexMap)
	e.count("variables", 4, len(o.Variables), 4)
	for i, v := range o.Variables {
		at := fmt.Sprintf("variables[%d].", i)
		e.name(at+"name", v.Name)
		e.intervals(at+"intervals", 2, v.Intervals)
	}
	e.count("subroutines", 2, len(o.Subroutines), 12)
	for i, s := range o.Subroutines {
		at := fmt.Sprintf("subroutines[%d].", i)
		e.name(at+"name", s.Name)
		e.number("number", at+"start", 4, s.Start)
		e.number("number", at+"end", 4, s.End)
		e.intervals(at+"return_value", 2, s.ReturnValue)
	}
	e.number("number", "frame.size", 2, uint32(o.Frame.Size))
	for _, x := range []struct {
		name string
		list []Interval
	}{{"be_fp", o.Frame.BEFP}, {"caller_be_fp", o.Frame.CallerBEFP}, {"return_address", o.Frame.ReturnAddress}} {
		if x.list == nil {
			e.enum("frame."+x.name, 0, 1)
			continue
		}
		e.enum("frame."+x.name, 1, 1)
		e.intervals("frame."+x.name, 4, x.list)
	}
	if layout == LayoutC {
		e.number("number", "frame.ce_offset", 2, uint32(o.Frame.CE.Offset))
		e.number("number", "frame.ce_store_ip", 2, uint32(o.Frame.CE.StoreIP))
	}
	callers := 4
	if layout == LayoutA {
		callers = 2
	}
	e.saves("frame.callee_saves", 2, o.Frame.CalleeSaves)
	e.saves("frame.caller_saves", callers, o.Frame.CallerSaves)
}

func (e *encoder) mappings(at string, list []Mapping) {
	e.count(at, 4, len(list), 8)
	for i, m := range list {
		e.number("number", fmt.Sprintf("%s[%d].visa", at, i), 4, m.VISA)
		e.number("number", fmt.Sprintf("%s[%d].gen", at, i), 4, m.Gen)
	}
}

func (e *encoder) intervals(at string, size int, list []Interval) {
	e.count(at, 2, len(list), 2*size+6)
	for i, x := range list {
		at := fmt.Sprintf("%s[%d].", at, i)
		e.number("number", at+"start", size, x.Start)
		e.number("number", at+"end", size, x.End)
		e.enum(at+"virtual", uint8(x.Virtual), 2)
		e.enum(at+"physical", uint8(x.Location.Storage), 3)
		e.location(at, x.Location)
	}
}

func (e *encoder) location(at string, l Location) {
	if l.Storage != Memory {
		e.number("register", at+"register", 2, uint32(l.Register))
		e.number("register", at+"subregister", 2, uint32(l.Subregister))
		return
	}
	v := uint32(l.Offset) & 0x7fffffff
	if l.IsAbsolute {
		v |= 0x80000000
	}
	e.number("location", at+"offset", 4, v)
}

func (e *encoder) saves(at string, size int, list []Save) {
	e.count(at, size, len(list), 6)
	for i, s := range list {
		at := fmt.Sprintf("%s[%d].", at, i)
		e.number("number", at+"gen_offset", 4, s.GenOffset)
		e.count(at+"entries", 2, len(s.Registers), 9)
		for k, g := range s.Registers {
			at := fmt.Sprintf("%sentries[%d].", at, k)
			e.number("number", at+"register_offset", 2, uint32(g.Offset))
			e.number("number", at+"bytes", 2, uint32(g.Bytes))
			inRegister := uint8(0)
			if g.Location.Storage == General {
				inRegister = 1
			}
			e.enum(at+"physical", inRegister, 1)
			e.location(at, g.Location)
		}
	}
}
