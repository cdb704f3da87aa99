// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// seeds are sections of every kind that the other tests write.
func seeds(f *testing.F, add func(b *builder)) {
	for _, eh := range []bool{true, false} {
		for _, version := range []int{1, 3, 4} {
			for _, dwarf64 := range []bool{false, true} {
				for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
					b := debugFrame()
					if eh {
						b = ehFrame()
					}
					b.dwarf64, b.Order = dwarf64, order
					c := cieSpec{version: version, instructions: x86Initial}
					cie := b.cie(c)
					b.fde(cie, c, fdeSpec{start: 0x1000, size: 0x40, instructions: []byte{0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6, 2, 9, 0x0b, 0x41, 0xc6}})
					b.fde(cie, c, fdeSpec{start: 0x1010, size: 0x10, instructions: []byte{0x0f, 2, 0x77, 8, 0x10, 3, 1, 0x50, 0x16, 3, 1, 0x50}})
					c = cieSpec{version: version, augmentation: "zPLR", data: cat(0x03, 1, 2, 3, 4, 0x1b, 0x1b), encoding: 0x1b}
					b.fde(b.cie(c), c, fdeSpec{start: 0x3000, size: 0x40, data: []byte{1, 2, 3, 4}, instructions: []byte{0x30, 6, 0, 5, 0x1d, 1, 0, 0, 0, 0, 0, 0, 0, 0x2d, 0x2e, 5}})
					c = cieSpec{version: version, augmentation: "[amd:v0.0]", segmentSize: map[bool]int{true: 2}[version == 4]}
					b.fde(b.cie(c), c, fdeSpec{start: 0x4000, size: 0x40, instructions: []byte{0x31, 6, 0x7f, 5, 7, 0x90, 0x1c, 0x2f, 3, 1, 0x14, 7, 0}})
					add(b)
				}
			}
		}
	}
}

// seedsOfPointers are sections with every pointer encoding, and with odd
// CIEs and FDEs.
func seedsOfPointers(add func(b *builder)) {
	for _, encoding := range []byte{ehpe.AbsPtr, ehpe.ULEB128, ehpe.UData2, ehpe.UData8, ehpe.Signed, ehpe.SLEB128, ehpe.SData2, ehpe.SData8,
		ehpe.TextRel | ehpe.SData4, ehpe.DataRel | ehpe.SData4, ehpe.PCRel | ehpe.SData8, ehpe.Aligned, ehpe.Indirect | ehpe.UData4, ehpe.FuncRel} {
		b := ehFrame()
		c := cieSpec{augmentation: "zRL", data: []byte{encoding, encoding}, encoding: encoding, instructions: cat(x86Initial, 0x10, 3, 1, 0x50)}
		cie := b.cie(c)
		for _, start := range []uint64{0x3000, 0x2000, 0x2008, 0} { // out of order, one in another, one null
			b.fde(cie, c, fdeSpec{start: start, size: 16, data: make([]byte, 16), instructions: []byte{0x0a, 8, 3, 0x41, 0x0b, 0x2c, 0x0d, 6}})
		}
		b.Data = append(b.Data, 0, 0, 0, 0)
		for _, augmentation := range []string{"eh", "zSBG", "armcc+"} {
			c := cieSpec{augmentation: augmentation, instructions: x86Initial}
			b.fde(b.cie(c), c, fdeSpec{start: 0x4000, size: 16, instructions: []byte{0x3f}})
		}
		add(b)
	}
}

// rowsAndError is what an FDE outside of a listing says, as text.
func rowsAndError(f *FDE) string {
	var out strings.Builder
	n := 0
	alone := *f
	alone.listing = nil
	err := alone.Rows(func(r *Row) bool {
		out.WriteString(text(r) + "\n")
		n++
		return n < 100
	})
	return fmt.Sprintf("%s%v", out.String(), err)
}

// onlyByTable is rowsAndError where neither the head of the FDE nor its
// instructions are read in the tight path.
func onlyByTable(t *testing.T, f *FDE) string {
	table := f.CIE.table
	e, err := table.entryAt(f.CIE.Offset)
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.parseCIE(e)
	if err != nil {
		t.Fatal(err)
	}
	c.plain, c.layout.size = false, 0
	g := *f
	g.CIE = c
	if e, err = table.entryAt(f.Offset); err != nil {
		t.Fatal(err)
	}
	var b FDE
	r := table.reader(e.pos, e.end)
	if err := table.bounds(c, &b, &r); err != nil || b.Start != f.Start || b.End != f.End || b.null != f.null || b.Segment != f.Segment {
		t.Fatalf("%+v, %v, bounds read them as %+v", f, err, b)
	}
	return rowsAndError(&g)
}

// check reads everything there is in a table and tests what must always hold.
func check(t *testing.T, table *Table) {
	var row Row
	for f, err := range table.FDEs() {
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Section == "" || f != nil {
				t.Fatalf("%+v, %v: want an *Error with a section", f, err)
			}
			continue
		}
		again, err := table.FDEAt(f.Offset)
		if err != nil || again.Start != f.Start || again.End != f.End {
			t.Fatalf("FDE at %#x: %+v, then %+v, %v", f.Offset, f, again, err)
		}
		if f.isLive() {
			for _, pc := range []uint64{f.Start, f.End - 1} {
				found, err := table.FDEIn(f.Code, pc)
				if err != nil || pc < found.Start || pc >= found.End || found.Start < f.Start || found.Code != f.Code {
					t.Fatalf("FDE of %#x: %+v, %v; one is %+v", pc, found, err, f)
				}
				if wherever, err := table.FDE(pc); (err != nil || wherever.Offset != found.Offset) && (f.Code == 0 || err != nil && !errors.Is(err, ErrAmbiguous)) {
					t.Fatalf("FDE of %#x: %+v, %v; in section %d %+v", pc, wherever, err, f.Code, found)
				}
			}
		}
		if slow, fast := onlyByTable(t, f), rowsAndError(f); slow != fast {
			t.Fatalf("%+v\nby the table of opcodes\n%s\nwithout\n%s", f, slow, fast)
		}
		next, n := f.Start, 0
		err = f.Rows(func(r *Row) bool {
			if r.Start != next || r.End <= r.Start || r.End > f.End {
				t.Fatalf("row %#x to %#x, want it from %#x, in %+v", r.Start, r.End, next, f)
			}
			for i := 1; i < len(r.Rules); i++ {
				if r.Rules[i-1].Column >= r.Rules[i].Column {
					t.Fatalf("columns not sorted: %s", text(r))
				}
			}
			next = r.End
			if n++; n < 8 {
				if err := f.RowAt(r.End-1, &row); err != nil || text(&row) != text(r) {
					t.Fatalf("RowAt %s, %v; Rows %s", text(&row), err, text(r))
				}
			}
			return n < 1000
		})
		if err == nil && n < 1000 && next != f.End && f.Start < f.End {
			t.Fatalf("rows end at %#x of %+v", next, f)
		}
	}
	listed, n := 0, 0
	for f, err := range table.FDEs() {
		if err != nil {
			listed++
		} else if err := f.Rows(func(*Row) bool { listed++; return listed < 1<<16 }); err != nil {
			listed++
		}
	}
	table.Rows(func(f *FDE, r *Row, err error) bool {
		if n++; err == nil && (r.Start < f.Start || r.End > f.End) {
			t.Fatalf("row %#x to %#x of %+v", r.Start, r.End, f)
		}
		return n < 1<<16
	})
	if listed < 1<<16 && n != listed {
		t.Fatalf("%d rows and errors at once, %d by FDE", n, listed)
	}
	for c, err := range table.CIEs() {
		if err == nil && c == nil {
			t.Fatal("neither CIE nor error")
		}
	}
	for _, pc := range []uint64{0, 0x1000, ^uint64(0)} {
		if f, err := table.FDE(pc); err == nil && (pc < f.Start || pc >= f.End) {
			t.Fatalf("FDE of %#x: %+v", pc, f)
		}
	}
}

// seedFile is a section of testdata/sections.
func seedFile(f *testing.F, name string) []byte {
	f.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "sections", name))
	if err != nil {
		f.Fatal(err)
	}
	return b
}

func fuzzSection(f *testing.F, eh bool) {
	if eh {
		f.Add(seedFile(f, "eh_frame.bin"), uint64(0x2088), false, false)
	} else {
		for _, name := range []string{"debug_frame.bin", "debug_frame.go.bin", "debug_frame.amdgpu.bin", "debug_frame.visa.bin"} {
			f.Add(seedFile(f, name), uint64(0), false, false)
		}
	}
	add := func(b *builder) {
		if b.EH == eh {
			for _, more := range []uint64{0, 3, 5} {
				f.Add(b.Data, b.Address+more, b.Order == binary.BigEndian, b.AddressSize == 4)
			}
		}
	}
	seeds(f, add)
	seedsOfPointers(add)
	f.Fuzz(func(t *testing.T, data []byte, address uint64, big, small bool) {
		s := Section{Name: "fuzz", Data: data, Address: address, EH: eh, Order: binary.LittleEndian, AddressSize: 8,
			Memory: func(dst []byte, address uint64) (int, error) {
				if address%2 == 1 {
					return 0, errors.New("odd")
				}
				for i := range dst {
					dst[i] = byte(address >> (8 * i))
				}
				return len(dst), nil
			}}
		if big {
			s.Order = binary.BigEndian
		}
		if small {
			s.AddressSize = 4
		}
		if address%2 == 0 {
			s.Text, s.DataBase = 0x500000, 0x600000
		}
		s.Open = address%4 == 3
		if address%8 == 5 {
			s.Code = func(offset uint64) (uint32, bool) { return uint32(offset>>3&1 + 1), offset%5 != 0 }
		}
		table, err := NewTable(s)
		if err != nil {
			t.Fatal(err)
		}
		check(t, table)
	})
}

func FuzzEHFrame(f *testing.F) { fuzzSection(f, true) }

func FuzzDebugFrame(f *testing.F) { fuzzSection(f, false) }

func FuzzHeader(f *testing.F) {
	f.Add(seedFile(f, "eh_frame_hdr.bin"), seedFile(f, "eh_frame.bin"), uint64(hdrAddress+0x2088-0x2010))
	for _, n := range []int{1, 3, 40} {
		b, entries := frames(n)
		for _, encoding := range []byte{0x3b, 0x1c, 0x03} {
			h := usual(entries)
			h.table = encoding
			f.Add(writeHeader(b, h).Data, b.Data, b.Address)
			// A table that is not in order and lacks an entry, one that leads
			// elsewhere, and none.
			if n > 3 {
				h.entries = slices.Clone(entries[1:])
				h.entries[3], h.entries[5] = h.entries[5], h.entries[3]
				f.Add(writeHeader(b, h).Data, b.Data, b.Address)
				h.entries[7][1] += 8
				f.Add(writeHeader(b, h).Data, b.Data, b.Address)
				h.pointer = 0x9b
				f.Add(writeHeader(b, h).Data, b.Data, b.Address)
				h.pointer, h.count = 0x1b, ehpe.Omit
				f.Add(writeHeader(b, h).Data, b.Data, b.Address)
			}
		}
	}
	f.Fuzz(func(t *testing.T, header, data []byte, address uint64) {
		s := Section{Name: "fuzz", Data: data, Address: address, EH: true, Order: binary.LittleEndian, AddressSize: 8}
		indexed, err := NewTable(s)
		if err != nil {
			t.Fatal(err)
		}
		without, _ := NewTable(s)
		if err := indexed.UseHeader(Section{Name: "header", Data: header, Address: hdrAddress}); err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%v is no *Error", err)
			}
		}
		// Whatever the header says, an FDE that is found covers the PC, and one
		// is found where the index finds one.
		for fde, err := range without.FDEs() {
			if err != nil || !fde.isLive() {
				continue
			}
			for _, pc := range []uint64{fde.Start, fde.End - 1} {
				found, err := indexed.FDE(pc)
				if err != nil || pc < found.Start || pc >= found.End {
					t.Fatalf("FDE of %#x: %+v, %v; one is %+v", pc, found, err, fde)
				}
			}
		}
	})
}
