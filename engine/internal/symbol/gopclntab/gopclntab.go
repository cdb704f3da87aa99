// SPDX-License-Identifier: Apache-2.0

// Package gopclntab reads the table of functions, files, lines and stack depths that the Go
// linker writes for the runtime (.gopclntab), which stripping leaves in place.
//
// Four layouts are read, told apart by their magic numbers: of Go 1.2, 1.16, 1.18 and 1.20.
// Inlined calls are known from Go 1.18 on: older trees are not read, and the one frame has
// the position of the innermost call. Where the trees of a later program are not found, a
// frame of inlined code has no position, for it would be the position of another function.
package gopclntab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// ErrNoTable is returned for an object without .gopclntab.
var ErrNoTable = errors.New("no .gopclntab")

// sectionNames are the names of the table's section, which depend on how the executable was
// linked.
var sectionNames = []string{".gopclntab", ".data.rel.ro.gopclntab"}

// The magic numbers of the layouts.
const (
	magic12  = 0xfffffffb
	magic116 = 0xfffffffa
	magic118 = 0xfffffff0
	magic120 = 0xfffffff1
)

// Indexes of the tables that inlined calls are found by, the same in all versions with the
// layouts of 1.18 and 1.20.
const (
	pcdataInlTree   = 2
	funcdataInlTree = 3
)

// Bounds on what one address costs.
const (
	maxSteps  = 1 << 20 // of a table of values by PC
	maxInline = 1 << 10 // nested calls
	maxName   = 1 << 16 // bytes
)

// Table has the functions of one Go program. It implements symbol.Source, does not change,
// and may be used concurrently.
type Table struct {
	name    string
	order   binary.ByteOrder
	magic   uint32
	quantum uint64
	ptrSize int

	nfunc     int
	field     int // bytes of a field of functab
	textStart uint64
	names     []byte
	cutab     []byte
	files     []byte
	pctab     []byte
	functab   []byte // including the functions, whose offsets count from here
	gofunc    []byte // base of funcdata offsets; nil where it is unknown
}

// New finds the table of an object. The error of an object without one wraps
// ErrNoTable.
func New(o *object.Object) (*Table, error) {
	for _, name := range sectionNames {
		s := o.Section(name)
		if s == nil {
			continue
		}
		b, err := s.Data()
		if errors.Is(err, object.ErrNoData) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var t *Table
		err = object.Guard(func() (err error) {
			if t, err = parse(b); err != nil {
				return fmt.Errorf("%s: section %s: %w", o.Name(), name, err)
			}
			t.name = o.Name()
			t.textStart, t.gofunc = 0, nil
			if t.magic == magic118 || t.magic == magic120 {
				t.place(o, s.Address, b)
			}
			return nil
		})
		return t, err
	}
	return nil, fmt.Errorf("%s: %w", o.Name(), ErrNoTable)
}

// Offsets in the header. Words of the size of a pointer follow it: the number of functions,
// and in later layouts the offsets of the table's parts.
const (
	zeroesAt  = 4 // two bytes
	quantumAt = 6 // the smallest size of an instruction
	ptrSizeAt = 7 // the size of a pointer
	wordsAt   = 8
)

// parse reads the header. Addresses of functions in the layouts of 1.18 and 1.20
// count from textStart, which is not known yet.
func parse(b []byte) (*Table, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("%d bytes, expected 16 or more", len(b))
	}
	t := &Table{quantum: uint64(b[quantumAt]), ptrSize: int(b[ptrSizeAt])}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch magic := order.Uint32(b); magic {
		case magic12, magic116, magic118, magic120:
			t.order, t.magic = order, magic
		}
	}
	switch {
	case t.order == nil:
		return nil, fmt.Errorf("offset 0: magic number % x, expected one of Go 1.2, 1.16, 1.18 or 1.20", b[:zeroesAt])
	case b[zeroesAt] != 0 || b[zeroesAt+1] != 0 || t.quantum != 1 && t.quantum != 2 && t.quantum != 4:
		return nil, fmt.Errorf("offset %d: % x, expected two zero bytes and an instruction size of 1, 2 or 4", zeroesAt, b[zeroesAt:ptrSizeAt])
	case t.ptrSize != 4 && t.ptrSize != 8:
		return nil, fmt.Errorf("offset %d: pointers of %d bytes, expected 4 or 8", ptrSizeAt, t.ptrSize)
	}
	t.field = t.ptrSize
	if t.magic == magic118 || t.magic == magic120 {
		t.field = 4
	}
	if err := t.readParts(b); err != nil {
		return nil, err
	}
	entries := t.entries()
	n := t.pointer(b[wordsAt:])
	if n > uint64(len(entries)/(2*t.field)) || uint64(len(entries)) < (2*n+1)*uint64(t.field) {
		return nil, fmt.Errorf("offset %d: %d functions, which are not in the %d bytes of the table", wordsAt, n, len(entries))
	}
	t.nfunc = int(n)
	if t.magic != magic12 {
		return t, nil
	}
	end := (2*t.nfunc + 1) * t.field
	if len(entries) < end+4 {
		return nil, fmt.Errorf("%d bytes, expected the offset of the files after %d functions", len(b), t.nfunc)
	}
	offset := t.order.Uint32(entries[end:])
	if uint64(offset) > uint64(len(b)) {
		return nil, fmt.Errorf("the files begin at %#x of %#x", offset, len(b))
	}
	t.files = b[offset:]
	return t, nil
}

// readParts finds the parts of the table by the words of the header.
func (t *Table) readParts(b []byte) error {
	words := map[uint32]int{magic12: 1, magic116: 7, magic118: 8, magic120: 8}[t.magic]
	if len(b) < wordsAt+words*t.ptrSize {
		return fmt.Errorf("%d bytes, expected a header of %d", len(b), wordsAt+words*t.ptrSize)
	}
	if t.magic == magic12 {
		t.names, t.pctab, t.functab = b, b, b
		return nil
	}
	// The last words of the header say where each part begins.
	parts := []*[]byte{&t.names, &t.cutab, &t.files, &t.pctab, &t.functab}
	for i, part := range parts {
		word := wordsAt + (words-len(parts)+i)*t.ptrSize
		offset := t.pointer(b[word:])
		if offset > uint64(len(b)) {
			return fmt.Errorf("offset %#x: a part begins at %#x of %#x", word, offset, len(b))
		}
		*part = b[offset:]
	}
	return nil
}

// entries is the table of functions: their starts and the offsets of their descriptions.
func (t *Table) entries() []byte {
	if t.magic == magic12 {
		return t.functab[8+t.ptrSize:]
	}
	return t.functab
}

func (t *Table) pointer(b []byte) uint64 {
	if t.ptrSize == 4 {
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// entry reads a field of the table of functions.
func (t *Table) entry(n int) uint64 {
	b := t.entries()[n*t.field:]
	if t.field == 4 {
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// start is the address of a function; start(nfunc) is the end of the last one.
func (t *Table) start(n int) uint64 { return t.textStart + t.entry(2*n) }

// function is the description of one function in the table.
type function struct {
	start, end uint64
	name       int32
	flags      uint8 // 0 before the layout of 1.18, which had others
	pcsp       uint32
	pcfile     uint32
	pcln       uint32
	unit       uint32 // index in cutab of the unit's files
	line       int32  // of the declaration; 0: not known
	npcdata    uint32
	nfuncdata  uint8
	rest       []byte // pcdata, then funcdata
}

// find returns the function that contains an address.
func (t *Table) find(address uint64) (f function, ok bool, err error) {
	if t.nfunc == 0 || address < t.start(0) || address >= t.start(t.nfunc) {
		return f, false, nil
	}
	n := sort.Search(t.nfunc, func(i int) bool { return t.start(i) > address }) - 1
	if n < 0 { // starts that are not in order
		return f, false, nil
	}
	f, err = t.function(n)
	return f, err == nil && address >= f.start && address < f.end, err
}

// function reads the description of a function.
func (t *Table) function(n int) (f function, err error) {
	offset := t.entry(2*n + 1)
	f.start, f.end = t.start(n), t.start(n+1)
	startSize := 4
	if t.magic == magic12 || t.magic == magic116 {
		startSize = t.ptrSize
	}
	// The fields after the start, of 4 bytes each: name, args, deferreturn, pcsp,
	// pcfile, pcln, npcdata, and in later layouts the unit and the first line.
	size := map[uint32]int{magic12: 8 * 4, magic116: 9 * 4, magic118: 9 * 4, magic120: 10 * 4}[t.magic] + startSize
	if offset > uint64(len(t.functab)) || uint64(len(t.functab))-offset < uint64(size) {
		return f, fmt.Errorf("%s: function %d of .gopclntab at %#x is not in its %#x bytes", t.name, n, offset, len(t.functab))
	}
	b := t.functab[offset:]
	field := func(i int) uint32 { return t.order.Uint32(b[startSize+4*i:]) }
	f.name, f.pcsp, f.pcfile, f.pcln, f.npcdata = int32(field(0)), field(3), field(4), field(5), field(6)
	last := 7 // the field of one byte each: function id, flags, padding, nfuncdata
	if t.magic != magic12 {
		f.unit = field(7)
		last = 8
	}
	if t.magic == magic120 {
		f.line = int32(field(8))
		last = 9
	}
	if t.magic == magic118 || t.magic == magic120 {
		f.flags = b[startSize+4*last+1]
	}
	f.nfuncdata = b[startSize+4*last+3]
	f.rest = b[size:]
	return f, nil
}

// run is a range of addresses at which a table has one value.
type run struct {
	start, end uint64
	value      int32
}

// value returns the value of a table at an address in a function; ok is false where there
// is none.
func (t *Table) value(f *function, table uint32, address uint64) (value int32, ok bool) {
	r, ok := t.valueAt(f, table, address)
	return r.value, ok
}

// valueAt is value with the range where it is valid, which may end beyond the function.
func (t *Table) valueAt(f *function, table uint32, address uint64) (run, bool) {
	for r := range t.values(f, table) {
		if address < r.end {
			return r, true
		}
	}
	return run{}, false
}

// values are the runs of a table of a function, by address.
func (t *Table) values(f *function, table uint32) iter.Seq[run] {
	return func(yield func(run) bool) {
		if table == 0 || uint64(table) >= uint64(len(t.pctab)) {
			return
		}
		b := t.pctab[table:]
		pc := f.start
		value := int32(-1)
		for step := 0; step < maxSteps && (pc < f.end || step == 0); step++ {
			delta, n := binary.Uvarint(b)
			if n <= 0 || delta == 0 && step > 0 {
				return
			}
			b = b[n:]
			advance, n := binary.Uvarint(b)
			if n <= 0 {
				return
			}
			if advance > (f.end-pc)/t.quantum {
				// A table may run beyond its function, no further than its last value.
				advance = (f.end - pc + t.quantum - 1) / t.quantum
			}
			b = b[n:]
			value += zigzag(uint32(delta))
			start := pc
			if pc += advance * t.quantum; !yield(run{start, pc, value}) {
				return
			}
		}
	}
}

func zigzag(v uint32) int32 { return int32(v>>1) ^ -int32(v&1) }

// Frames appends the frames at an ELF virtual address; see symbol.Source. An error tells
// which part of the table is wrong.
func (t *Table) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	before := len(dst)
	err := object.Guard(func() (err error) {
		dst, err = t.frames(dst, address)
		return err
	})
	if err != nil {
		return dst[:before], err
	}
	return dst, nil
}

func (t *Table) frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	f, ok, err := t.find(address)
	if err != nil || !ok {
		return dst, err
	}
	// The lines end with the function; padding up to the next one follows.
	if _, ok := t.value(&f, f.pcln, address); !ok && f.pcln != 0 {
		return dst, nil
	}
	outer := trace.Symbol{Function: t.text(f.name), StartLine: int(max(f.line, 0)), Start: f.start, HasStart: true}
	before := len(dst)
	tree := t.tree(t.gofunc, &f)
	for range maxInline {
		n := t.inlinedCall(&f, address)
		if n < 0 {
			outer.File, outer.Line = t.position(&f, address)
			return append(dst, outer), nil
		}
		call, ok := t.call(tree, n, &f)
		if !ok {
			return append(dst[:before], outer), nil
		}
		frame := trace.Symbol{}
		frame.File, frame.Line = t.position(&f, address)
		frame.Function, frame.StartLine, frame.Inlined = t.text(call.name), int(max(call.line, 0)), true
		dst = append(dst, frame)
		address = f.start + uint64(call.parent)
	}
	return dst, fmt.Errorf("%s: .gopclntab: more than %d inlined calls at %#x", t.name, maxInline, address)
}

// Function returns the function that contains an ELF virtual address.
func (t *Table) Function(address uint64) (s symbol.Symbol, ok bool) {
	_ = object.Guard(func() error {
		f, found, err := t.find(address)
		if err == nil && found {
			s, ok = symbol.Symbol{Name: t.text(f.name), Start: f.start, End: f.end}, true
		}
		return nil
	})
	return s, ok
}

// text returns a function's name.
func (t *Table) text(offset int32) string {
	if offset < 0 || int64(offset) >= int64(len(t.names)) {
		return ""
	}
	return cString(t.names[offset:])
}

func cString(b []byte) string {
	if end := bytes.IndexByte(b[:min(len(b), maxName)], 0); end >= 0 {
		return string(b[:end])
	}
	return ""
}

// position returns the file and line of an address in a function; "" and 0 where they are
// unknown.
func (t *Table) position(f *function, address uint64) (string, int) {
	line, ok := t.value(f, f.pcln, address)
	if !ok || line < 0 {
		return "", 0
	}
	number, ok := t.value(f, f.pcfile, address)
	if !ok || number < 0 {
		return "", 0
	}
	name := ""
	if t.magic == magic12 {
		// The count of files is in the place of file 0.
		if offset := 4 * uint64(number); offset+4 <= uint64(len(t.files)) && uint64(number) < uint64(t.order.Uint32(t.files)) {
			name = t.text(int32(t.order.Uint32(t.files[offset:])))
		}
	} else if offset := 4 * (uint64(f.unit) + uint64(number)); offset+4 <= uint64(len(t.cutab)) {
		if off := t.order.Uint32(t.cutab[offset:]); uint64(off) < uint64(len(t.files)) {
			name = cString(t.files[off:])
		}
	}
	if name == "" {
		return "", 0
	}
	return name, int(line)
}
