// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	godwarf "debug/dwarf"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oracleSubjects are the forms that the standard library reads whole.
var oracleSubjects = []string{
	"gcc 5", "gcc 4", "gcc 3", "gcc 2", "gcc 64-bit", "gcc type units 4", "gcc zlib", "gcc link-time",
	"clang 5", "clang 4", "clang 2", "big endian 32", "32 bit", "arm", "relocatable 5",
}

func godwarfOf(t testing.TB, path string) *godwarf.Data {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func eachOracleSubject(t *testing.T, f func(t *testing.T, d *godwarf.Data, r *Reader)) {
	for _, s := range subjects {
		if !slices.Contains(oracleSubjects, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			_, path := s.build(t)
			f(t, godwarfOf(t, path), openMapped(t, path))
		})
	}
}

// A rowText is a row of a line table, with its file by name.
type rowText struct {
	Address                     uint64
	File                        string
	Line, Column, Discriminator int
	End                         bool
}

// allRows runs the program of a table.
func allRows(t *testing.T, table *lineTable) (list []rowText) {
	t.Helper()
	m := table.machine()
	for {
		event, err := m.step()
		if err != nil {
			t.Fatal(err)
		}
		if event == lineEnd {
			return list
		}
		row := rowText{Address: m.address, End: event == lineEndSequence}
		if !row.End {
			row.File, row.Line, row.Column = table.fileName(uint64(m.row.file), "").path, int(m.line), int(m.column)
			row.Discriminator = int(m.discriminator)
		} else {
			m.reset()
		}
		list = append(list, row)
	}
}

func TestEveryRowOfEveryLineTableIsTheStandardLibrarys(t *testing.T) {
	eachOracleSubject(t, func(t *testing.T, d *godwarf.Data, r *Reader) {
		entries := d.Reader()
		tables, rows := 0, 0
		for {
			e, err := entries.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e == nil {
				break
			}
			if e.Tag != godwarf.TagCompileUnit {
				entries.SkipChildren()
				continue
			}
			entries.SkipChildren()
			lines, err := d.LineReader(e)
			if err != nil {
				t.Fatal(err)
			}
			if lines == nil {
				continue
			}
			var want []rowText
			for {
				var l godwarf.LineEntry
				if err := lines.Next(&l); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				row := rowText{Address: l.Address, End: l.EndSequence}
				if !l.EndSequence {
					row.Line, row.Column, row.Discriminator = l.Line, l.Column, l.Discriminator
					if l.File != nil {
						row.File = l.File.Name
					}
				}
				want = append(want, row)
			}
			b, err := r.main.unitAt(uint64(e.Offset)).open()
			if err != nil {
				t.Fatal(err)
			}
			table, err := b.lineTable()
			if err != nil {
				t.Fatal(err)
			}
			got := allRows(t, table)
			for i := range got {
				got[i].File = "" // the standard library joins directories in its own way
			}
			for i := range want {
				want[i].File = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("unit at %#x: (-standard library +ours)\n%s", b.offset, diff)
			}
			tables++
			rows += len(want)
			checkPositions(t, table, want)
		}
		if tables == 0 || rows < 20 {
			t.Errorf("only %d tables with %d rows were compared", tables, rows)
		}
		t.Logf("%d tables, %d rows", tables, rows)
	})
}

// checkPositions looks up the addresses of a table's rows. The last of several
// rows at an address counts.
func checkPositions(t *testing.T, table *lineTable, rows []rowText) {
	t.Helper()
	overlap := map[uint64]bool{} // addresses that several sequences hold: of code thrown away
	for _, s := range table.sequences {
		for _, o := range table.sequences {
			if s.start != o.start && o.holds(s.start) {
				overlap[s.start] = true
			}
		}
	}
	for i, row := range rows {
		if row.End || i+1 < len(rows) && !rows[i+1].End && rows[i+1].Address == row.Address {
			continue
		}
		if i+1 < len(rows) && rows[i+1].End && rows[i+1].Address == row.Address || !table.file.isLive(span{row.Address, row.Address + 1}) || overlap[row.Address] {
			continue
		}
		got, ok := table.position(row.Address, false)
		if !ok || int(got.line) != row.Line || int(got.column) != row.Column {
			t.Errorf("%#x: %+v, found %v, want line %d, column %d", row.Address, got, ok, row.Line, row.Column)
			return
		}
	}
}

func TestEveryFunctionsRangesAreTheStandardLibrarys(t *testing.T) {
	eachOracleSubject(t, func(t *testing.T, d *godwarf.Data, r *Reader) {
		entries := d.Reader()
		functions, calls := 0, 0
		for {
			e, err := entries.Next()
			if err != nil {
				t.Fatal(err)
			}
			if e == nil {
				break
			}
			if e.Tag != godwarf.TagSubprogram && e.Tag != godwarf.TagInlinedSubroutine {
				continue
			}
			ranges, err := d.Ranges(e)
			if err != nil {
				t.Fatal(err)
			}
			var want []span
			for _, x := range ranges {
				if s := (span{x[0], x[1]}); r.main.isLive(s) {
					want = append(want, s)
				}
			}
			entry, err := Unit{mustOpen(t, r, uint64(e.Offset))}.Entry(uint64(e.Offset))
			if err != nil {
				t.Fatal(err)
			}
			got, err := entry.spans()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("entry at %#x: %#x, want %#x", e.Offset, got, want)
			}
			switch {
			case len(want) == 0:
			case e.Tag == godwarf.TagSubprogram:
				functions++
				checkFound(t, r, uint64(e.Offset), want)
			default:
				calls++
			}
		}
		if functions < 2 || calls == 0 {
			t.Errorf("only %d functions and %d calls were compared", functions, calls)
		}
		t.Logf("%d functions, %d inlined calls", functions, calls)
	})
}

func mustOpen(t *testing.T, r *Reader, off uint64) *body {
	t.Helper()
	b, err := r.main.unitAt(off).open()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkFound checks that a function is found by each of its addresses.
func checkFound(t *testing.T, r *Reader, off uint64, ranges []span) {
	t.Helper()
	for _, s := range ranges {
		for _, a := range []uint64{s.start, s.end - 1} {
			b, f, err := r.describing(a)
			if err != nil || f == nil {
				t.Errorf("%#x: function %v, error %v, want the one at %#x", a, f, err, off)
				continue
			}
			if got := b.offset + uint64(f.offset); got != off {
				t.Errorf("%#x: function at %#x, want the one at %#x", a, got, off)
			}
		}
	}
}
