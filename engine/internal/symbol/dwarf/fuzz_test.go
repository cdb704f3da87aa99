// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
)

// fuzzReader makes a reader of hostile sections; nil where they hold no unit.
func fuzzReader(s sections) *Reader {
	r, err := newTestReader("fuzz", s)
	if err != nil {
		return nil
	}
	return r
}

// askAll asks everything that there is to ask.
func askAll(r *Reader, addresses []uint64) {
	var frames []trace.Symbol
	for _, a := range addresses {
		frames, _ = r.Frames(frames[:0], a)
		_ = object.Guard(func() error {
			askScopes(r, a)
			site, err := r.CallSite(a)
			if err == nil && !site.IsZero() {
				askCall(r, site)
			}
			return err
		})
	}
	if m, err := r.CodeMap(); err == nil {
		_ = m.EachFunction(func(*symbol.FunctionCode) bool { return true })
		for _, a := range addresses {
			m.Covers(a)
			m.Lines(nil, symbol.CodeRange{Start: a, End: a + 16})
		}
	}
	for _, a := range addresses {
		_, _, _ = r.Variable(a, "work")
		_, _ = r.Locals(nil, a)
	}
	n := 0
	for range r.Expressions() {
		if n++; n > 1000 {
			break
		}
	}
	r.Problems()
}

// askCall reads what a call site says.
func askCall(r *Reader, site CallSite) {
	_, _, _ = site.Target()
	_, _, _, _ = site.PC()
	for p, err := range site.Parameters() {
		if err != nil {
			break
		}
		_, _ = p.Parameter()
		_, _, _ = p.Value()
		_, _, _ = p.DataValue()
	}
	callee, err := site.Callee()
	if err != nil || callee.IsZero() {
		return
	}
	bodies, _, _ := r.Bodies(site, callee)
	for _, b := range bodies {
		_, _, _ = b.TailCalls()
		_, _, _ = b.EntryPC()
	}
}

// askScopes reads what there is at an address.
func askScopes(r *Reader, address uint64) {
	_, _ = r.Function(address)
	_, _ = r.FunctionFrom(address)
	unit, _, _ := r.UnitAt(address)
	_ = unit.b != nil && unit.String() == ""
	scopes, _ := r.Scopes(address)
	for _, s := range scopes {
		n := 0
		for v, err := range s.Variables() {
			if n++; err != nil || n > 100 {
				break
			}
			v.Name()
			if l, ok, err := v.Location(dw.AttrLocation); ok && err == nil {
				_, _ = l.At(address)
			}
			if typ, err := v.Type(); err == nil && !typ.IsZero() {
				_, _ = typ.BaseType()
			}
		}
	}
}

func smallSections(f *testing.F) (list []sections) {
	for _, path := range []string{"testdata/small5", "testdata/small4", "testdata/small2"} {
		list = append(list, openReader(f, path).main.sections)
	}
	return list
}

var smallAddresses = func() (list []uint64) {
	for a := uint64(0x4000a0); a < 0x400160; a += 7 {
		list = append(list, a)
	}
	return list
}()

// FuzzInfo reads hostile entries and abbreviations.
func FuzzInfo(f *testing.F) {
	for _, s := range smallSections(f) {
		f.Add(s.info, s.abbrev, s.str, false)
	}
	f.Fuzz(func(_ *testing.T, info, abbrev, str []byte, big bool) {
		if r := fuzzReader(sections{info: info, abbrev: abbrev, str: str, isBigEndian: big}); r != nil {
			askAll(r, smallAddresses)
		}
	})
}

// FuzzLine reads a hostile line table, every row of it and by address.
func FuzzLine(f *testing.F) {
	object := openObject(f, "testdata/small4")
	for _, s := range smallSections(f) {
		f.Add(s.line, s.lineStr, s.str, false)
	}
	for _, name := range []string{"sum75.cubin", "sum120.cubin"} {
		_, r := openCubin(f, name)
		f.Add(r.main.line, r.main.lineStr, r.main.str, false)
	}
	f.Fuzz(func(t *testing.T, line, lineStr, str []byte, big bool) {
		file := &file{object: object, sections: sections{line: line, lineStr: lineStr, str: str, isBigEndian: big}}
		lone := &Reader{main: file}
		file.reader = lone
		table, err := file.lineTableAt(0, 8)
		if err != nil {
			return
		}
		for i := range table.files {
			table.fileName(uint64(i), "/c")
		}
		for _, s := range table.sequences[:min(len(table.sequences), 64)] {
			// The row that is kept and the row that is found are the same.
			for _, a := range []uint64{s.start, s.start + (s.end-s.start)/2, s.end - 1} {
				if row, ok := table.rowIn(&s, a); ok && row.address > a {
					t.Fatalf("%#x: row at %#x", a, row.address)
				}
				if frames, err := lone.Frames(nil, a); err != nil || len(frames) > maxInlinedLines+1 {
					t.Fatalf("%#x: %d frames, %v", a, len(frames), err)
				}
			}
		}
	})
}

// FuzzRanges reads hostile range lists of both kinds.
func FuzzRanges(f *testing.F) {
	f.Add(words(8, 0x10, 0x20, ^uint64(0), 0x5000, 0x10, 0x20, 0, 0), words(8, 0x6000, 0x7000), false)
	f.Add([]byte{rleBaseAddressx, 1, rleOffsetPair, 1, 2, rleStartxEndx, 0, 1, rleStartxLength, 1, 5, 0}, words(8, 0x6000, 0x7000), false)
	f.Fuzz(func(t *testing.T, list, addr []byte, big bool) {
		for _, version := range []uint8{4, 5} {
			for _, size := range []uint8{2, 4, 8} {
				file := &file{sections: sections{debugRanges: list, rnglists: list, addr: addr, aranges: list, isBigEndian: big}}
				b := &body{unit: &unit{unitHeader: unitHeader{file: file, format: format{version: version, addrSize: size, offsetSize: 4, isBigEndian: big}}}}
				budget := int64(1000)
				var spans []span
				if version == 4 {
					spans, _ = b.rangeList(0, nil, &budget)
				} else {
					spans, _ = b.rangeList5(0, nil, &budget)
				}
				var list []ranges.Range
				for i, s := range spans {
					if s.start >= s.end {
						t.Fatalf("an empty range [%#x, %#x)", s.start, s.end)
					}
					list = append(list, ranges.Range{Start: s.start, End: s.end, Index: int32(i)})
				}
				flat := ranges.Flatten(list)
				for i := 1; i < len(flat.Starts); i++ {
					if flat.Starts[i-1] >= flat.Starts[i] {
						t.Fatalf("segments out of order: %v", flat)
					}
				}
			}
		}
	})
}

// FuzzIndexes reads hostile tables that lead to units, .debug_aranges and
// .gdb_index, beside sound units.
func FuzzIndexes(f *testing.F) {
	s := smallSections(f)[1]
	f.Add(s.aranges, gdbIndex(uint64(len(s.info))))
	f.Fuzz(func(t *testing.T, aranges, gdbIndex []byte) {
		hostile := s
		hostile.aranges = aranges
		r := fuzzReader(hostile)
		if r == nil {
			t.Fatal("the units are sound")
		}
		r.main.readGDBIndex(gdbIndex)
		// Whatever the tables say, the function is found.
		frames, err := r.Frames(nil, 0x4000d0)
		if err != nil || len(frames) != 1 || frames[0].Function != "outer::work(int)" {
			t.Fatalf("frames %+v, error %v, want outer::work(int)", frames, err)
		}
	})
}

// gdbIndex is a .gdb_index of one unit over the code of testdata/small4.
func gdbIndex(size uint64) []byte {
	b := words(4, 8, 24, 40, 40, 60, 60)
	b = append(b, words(8, 0, size)...)
	return append(append(b, words(8, 0x4000b0, 0x400154)...), words(4, 0)...)
}

// FuzzPackageIndex reads a hostile index of a package.
func FuzzPackageIndex(f *testing.F) {
	for _, version := range []uint64{2, 5} {
		b := words(4, version, 2, 1, 2)
		b = append(append(b, words(8, 0, 0x1234567890abcdef)...), words(4, 0, 1, 1, 3, 0, 0, 0x40, 0x20)...)
		f.Add(b, uint64(0x1234567890abcdef), false)
	}
	f.Fuzz(func(_ *testing.T, data []byte, id uint64, big bool) {
		x, err := readPackageIndex(".debug_cu_index", data, big)
		if err != nil || x == nil {
			return
		}
		_, _ = x.find(id)
		for slot := range min(x.slots, 64) {
			at := x.ids + 8*slot
			_, _ = x.find(binary.LittleEndian.Uint64(data[at:]))
		}
	})
}

// FuzzFrames reads hostile sections, and asks for addresses that sound ones have.
func FuzzFrames(f *testing.F) {
	for _, s := range smallSections(f) {
		f.Add(s.info, s.abbrev, s.str, s.lineStr, s.line, s.debugRanges, s.rnglists, s.addr, s.strOffsets, s.aranges)
	}
	f.Fuzz(func(_ *testing.T, info, abbrev, str, lineStr, line, ranges, rnglists, addr, strOffsets, aranges []byte) {
		for _, big := range []bool{false, true} {
			r := fuzzReader(sections{
				info: info, abbrev: abbrev, str: str, lineStr: lineStr, line: line, debugRanges: ranges,
				rnglists: rnglists, addr: addr, strOffsets: strOffsets, aranges: aranges, isBigEndian: big,
			})
			if r != nil {
				askAll(r, smallAddresses)
			}
		}
	})
}

// FuzzSplit reads a hostile split file and the package of a sound object.
func FuzzSplit(f *testing.F) {
	skeleton, err := os.ReadFile("testdata/split5")
	if err != nil {
		f.Fatal(err)
	}
	split, err := os.ReadFile("testdata/split5.dwo")
	if err != nil {
		f.Fatal(err)
	}
	pack, err := os.ReadFile("testdata/split5.dwp")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(split, []byte{})
	f.Add([]byte{}, pack)
	dir := f.TempDir()
	path := filepath.Join(dir, "split5")
	if err := os.WriteFile(path, skeleton, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, split, pack []byte) {
		for name, data := range map[string][]byte{"split5.dwo": split, "split5.dwp": pack} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o, err := object.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		r, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		askAll(r, smallAddresses)
	})
}
