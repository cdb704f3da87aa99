// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The least sizes of the elements of lists in bytes, to check counts before
// memory is allocated.
const (
	minObject        = 2 + 4 + 4 + 4 + 4 + 2 + minFrame
	minFrame         = 2 + 1 + 1 + 1 + 2 + 2
	mappingBytes     = 4 + 4
	minVariable      = 2 + 2
	minSubroutine    = 2 + 4 + 4 + 2
	visaInterval     = 2 + 2 + 1 + 1 + 4
	genInterval      = 4 + 4 + 1 + 1 + 4
	minSave          = 4 + 2
	savedRegister    = 2 + 2 + 1 + 4
	maxOddities      = 16
	maxRegisters     = 512 // general registers of any processor
	maxRegisterBytes = 64
)

// reading is one attempt to read a stream as a layout.
type reading struct {
	b      []byte
	offset uint64 // of the next field
	stream *Stream
	path   []step
	err    *Error // why the stream is not of this layout

	nonsense *Error   // the first value that no compiler means
	oddities []string // the first values that compilers are not known to write
	oddCount int
}

// step is an element of the path to a field.
type step struct {
	name  string
	index int // -1: not in a list
}

// readAs reads all of b.
func readAs(b []byte, layout Layout) *reading {
	r := &reading{b: b, offset: 4, stream: &Stream{Layout: layout}}
	n := r.count("objects", uint64(r.u16("objects")), minObject)
	begins := map[uint32]int{} // the objects, by where their code begins
	r.stream.Objects = make([]Object, n)
	for i := range r.stream.Objects {
		if r.err != nil {
			return r
		}
		r.path = append(r.path[:0], step{"", i})
		o := &r.stream.Objects[i]
		r.object(o)
		if other, isTaken := begins[o.RelocOffset]; isTaken {
			r.odd("reloc_offset", "%#x, where object %d begins too", o.RelocOffset, other)
		} else {
			begins[o.RelocOffset] = i
		}
	}
	r.path = r.path[:0]
	if r.err == nil && r.offset != uint64(len(b)) {
		r.fail(r.offset, "end", "%d bytes follow the last object, expected none", uint64(len(b))-r.offset)
	}
	return r
}

// where returns the object and the path of the field that is being read.
func (r *reading) where(field string) (object string, path string) {
	for i, s := range r.path {
		switch {
		case i == 0:
			object = fmt.Sprint(s.index)
			if s.name != "" {
				object += fmt.Sprintf(" (%s)", s.name)
			}
			continue
		case path != "":
			path += "."
		}
		path += s.name
		if s.index >= 0 {
			path += fmt.Sprintf("[%d]", s.index)
		}
	}
	if path != "" && field != "" {
		path += "."
	}
	return object, path + field
}

// problem returns an error about a field of this reading.
func (r *reading) problem(offset uint64, field, format string, args ...any) *Error {
	object, path := r.where(field)
	return &Error{Layout: r.stream.Layout, Object: object, Field: path, Offset: offset, Detail: fmt.Sprintf(format, args...)}
}

// fail ends the attempt.
func (r *reading) fail(offset uint64, field, format string, args ...any) {
	if r.err == nil {
		r.err = r.problem(offset, field, format, args...)
	}
}

// senseless records a value that no compiler means.
func (r *reading) senseless(offset uint64, field, format string, args ...any) {
	if r.err == nil && r.nonsense == nil {
		r.nonsense = r.problem(offset, field, format, args...)
	}
}

// odd records a value that compilers are not known to write.
func (r *reading) odd(field, format string, args ...any) {
	if r.err != nil {
		return
	}
	if r.oddCount++; r.oddCount <= maxOddities {
		object, path := r.where(field)
		r.oddities = append(r.oddities, fmt.Sprintf("object %s: %s: %s", object, path, fmt.Sprintf(format, args...)))
	}
}

// enter goes into an element of a list, or with index -1 into a structure.
func (r *reading) enter(name string, index int) { r.path = append(r.path, step{name, index}) }

func (r *reading) leave() { r.path = r.path[:len(r.path)-1] }

// take returns the next n bytes, nil at the end of the stream.
func (r *reading) take(field string, n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if left := uint64(len(r.b)) - r.offset; n > left {
		r.fail(r.offset, field, "%d bytes are left in the stream, expected %d", left, n)
		return nil
	}
	r.offset += n
	return r.b[r.offset-n : r.offset]
}

func (r *reading) u8(field string) uint8 {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reading) u16(field string) uint16 {
	if b := r.take(field, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reading) u32(field string) uint32 {
	if b := r.take(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// count checks how many elements a list has, of at least size bytes each. The
// number itself has just been read.
func (r *reading) count(field string, n uint64, size uint64) int {
	if r.err != nil {
		return 0
	}
	if left := uint64(len(r.b)) - r.offset; n > left/size {
		r.fail(r.offset, field, "%d of at least %d bytes each, expected no more than the %d bytes that are left in the stream", n, size, left)
		return 0
	}
	return int(n)
}

// enum reads a byte that has a largest value.
func (r *reading) enum(field string, largest uint8) uint8 {
	start := r.offset
	v := r.u8(field)
	if v > largest {
		r.fail(start, field, "%d, expected 0 to %d", v, largest)
	}
	return v
}

// name reads a counted string.
func (r *reading) name() string {
	start := r.offset
	b := r.take("name", uint64(r.u16("name")))
	if !utf8.Valid(b) || strings.ContainsFunc(string(b), unicode.IsControl) {
		r.senseless(start, "name", "%q, expected UTF-8 without control characters", b)
	}
	return string(b)
}

func (r *reading) object(o *Object) {
	start := r.offset
	o.Name = r.name()
	if o.Name == "" {
		r.senseless(start, "name", "no name, expected one")
	} else if r.err == nil {
		r.path[0].name = fmt.Sprintf("%q", o.Name)
	}
	o.RelocOffset = r.u32("reloc_offset")
	o.OffsetMap = r.mappings("offset_map")
	o.IndexMap = r.mappings("index_map")
	o.Variables = make([]Variable, r.count("variables", uint64(r.u32("variables")), minVariable))
	for i := range o.Variables {
		r.enter("variables", i)
		o.Variables[i].Name = r.name()
		o.Variables[i].Intervals = r.visaIntervals("intervals")
		r.leave()
	}
	o.Subroutines = make([]Subroutine, r.count("subroutines", uint64(r.u16("subroutines")), minSubroutine))
	for i := range o.Subroutines {
		r.enter("subroutines", i)
		s := &o.Subroutines[i]
		s.Name = r.name()
		s.Start, s.End = r.u32("start"), r.u32("end")
		if s.End < s.Start {
			r.odd("end", "%d before the start, %d", s.End, s.Start)
		}
		s.ReturnValue = r.visaIntervals("return_value")
		r.leave()
	}
	r.enter("frame", -1)
	r.frame(&o.Frame)
	r.leave()
}

func (r *reading) mappings(field string) []Mapping {
	list := make([]Mapping, r.count(field, uint64(r.u32(field)), mappingBytes))
	for i := range list {
		r.enter(field, i)
		list[i] = Mapping{r.u32("visa"), r.genOffset("gen")}
		if i > 0 && list[i].Gen < list[i-1].Gen {
			r.odd("gen", "%d after %d, expected an ascending order", list[i].Gen, list[i-1].Gen)
		}
		r.leave()
	}
	return list
}

// genOffset reads a byte offset of a Gen instruction, which has 8 or 16 bytes.
func (r *reading) genOffset(field string) uint32 {
	v := r.u32(field)
	if v%8 != 0 {
		r.odd(field, "%d, expected a multiple of 8", v)
	}
	return v
}

// visaIntervals reads intervals in vISA indexes.
func (r *reading) visaIntervals(field string) []Interval {
	list := make([]Interval, r.count(field, uint64(r.u16(field)), visaInterval))
	for i := range list {
		r.enter(field, i)
		list[i].Start, list[i].End = uint32(r.u16("start")), uint32(r.u16("end"))
		r.interval(&list[i])
		r.leave()
	}
	return list
}

// genIntervals reads intervals in Gen offsets, after a byte that is 0 where the list
// is absent; it is nil then.
func (r *reading) genIntervals(field string) []Interval {
	if r.enum(field, 1) == 0 {
		return nil
	}
	list := make([]Interval, r.count(field, uint64(r.u16(field)), genInterval))
	for i := range list {
		r.enter(field, i)
		list[i].Start, list[i].End = r.genOffset("start"), r.genOffset("end")
		r.interval(&list[i])
		r.leave()
	}
	return list
}

// interval reads the fields after an interval's start and end.
func (r *reading) interval(i *Interval) {
	if i.Start > i.End {
		r.odd("end", "%d before the start, %d", i.End, i.Start)
	}
	i.Virtual = Storage(r.enum("virtual", uint8(General)))
	i.Location = r.location(Storage(r.enum("physical", uint8(Memory))))
}

// location reads four bytes. For memory, bit 31 is set where the offset is
// absolute, and the 31 bits below it are the offset, signed.
func (r *reading) location(s Storage) Location {
	if s == Memory {
		v := r.u32("offset")
		return Location{Storage: s, IsAbsolute: v>>31 == 1, Offset: int32(v<<1) >> 1}
	}
	start := r.offset
	l := Location{Storage: s, Register: r.u16("register"), Subregister: r.u16("subregister")}
	switch largest := uint16(largestOf(s)); {
	case l.Register == NotAllocated:
	case l.Register > largest:
		r.senseless(start, "register", "%s register %d, expected 0 to %d", s, l.Register, largest)
	case l.Subregister >= maxRegisterBytes:
		r.senseless(start, "subregister", "%d, expected less than %d", l.Subregister, maxRegisterBytes)
	}
	return l
}

// largestOf returns the largest register number of a kind that any processor
// has.
func largestOf(s Storage) int {
	if s == General {
		return maxRegisters - 1
	}
	return 15
}

func (r *reading) frame(f *Frame) {
	f.Size = r.u16("size")
	f.BEFP = r.genIntervals("be_fp")
	f.CallerBEFP = r.genIntervals("caller_be_fp")
	f.ReturnAddress = r.genIntervals("return_address")
	if r.stream.Layout == LayoutC {
		f.CE = &CE{Offset: r.u16("ce_offset"), StoreIP: r.u16("ce_store_ip")}
		if f.CE.Offset == 0 && f.CE.StoreIP != 0 {
			r.odd("ce_store_ip", "%d though nothing is stored, expected 0", f.CE.StoreIP)
		}
	}
	f.CalleeSaves = r.saves("callee_saves", uint64(r.u16("callee_saves")))
	if r.stream.Layout == LayoutA {
		f.CallerSaves = r.saves("caller_saves", uint64(r.u16("caller_saves")))
	} else {
		f.CallerSaves = r.saves("caller_saves", uint64(r.u32("caller_saves")))
	}
}

func (r *reading) saves(field string, n uint64) []Save {
	list := make([]Save, r.count(field, n, minSave))
	for i := range list {
		r.enter(field, i)
		r.save(&list[i])
		switch {
		case i == 0 && len(list[i].Registers) == 0:
			r.odd("entries", "the first restores, expected that it saves")
		case i > 0 && list[i].GenOffset < list[i-1].GenOffset:
			r.odd("gen_offset", "%d after %d, expected an ascending order", list[i].GenOffset, list[i-1].GenOffset)
		}
		r.leave()
	}
	return list
}

func (r *reading) save(s *Save) {
	s.GenOffset = r.genOffset("gen_offset")
	s.Registers = make([]SavedRegister, r.count("entries", uint64(r.u16("entries")), savedRegister))
	for i := range s.Registers {
		r.enter("entries", i)
		start, g := r.offset, &s.Registers[i]
		g.Offset, g.Bytes = r.u16("register_offset"), r.u16("bytes")
		if end := uint32(g.Offset) + uint32(g.Bytes); g.Bytes == 0 || end > maxRegisters*maxRegisterBytes {
			r.senseless(start, "bytes", "%d from %d on, expected some, and within %d registers", g.Bytes, g.Offset, maxRegisters)
		}
		inRegister := r.enum("physical", 1)
		g.Location = r.location([]Storage{Memory, General}[inRegister&1])
		r.leave()
	}
}
