// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestRowAtEqualsRows(t *testing.T) {
	table, _ := elfTable(t, library("libc.so.6")(t), ".eh_frame")
	var row Row
	n := 0
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		next := f.Start
		err := f.Rows(func(want *Row) bool {
			if want.Start != next || want.End <= want.Start {
				t.Fatalf("FDE at %#x: row %#x to %#x, want one at %#x", f.Offset, want.Start, want.End, next)
			}
			next = want.End
			for _, pc := range []uint64{want.Start, want.End - 1} {
				if err := f.RowAt(pc, &row); err != nil {
					t.Fatal(err)
				}
				if text(&row) != text(want) || row.ReturnAddress != want.ReturnAddress {
					t.Fatalf("%#x: RowAt %s, Rows %s", pc, text(&row), text(want))
				}
				n++
			}
			return true
		})
		if err != nil || next != f.End {
			t.Fatalf("FDE at %#x: rows end at %#x, want %#x: %v", f.Offset, next, f.End, err)
		}
	}
	if n < 20000 {
		t.Errorf("only %d PCs", n)
	}
}

func TestRowAtOutsideTheFDE(t *testing.T) {
	b := ehFrame()
	b.fde(b.cie(cieSpec{instructions: x86Initial}), cieSpec{}, fdeSpec{start: 0x1000, size: 16})
	f, err := b.table(t).FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	row := Row{Rules: []RegisterRule{{Column: 1}}, CFA: CFARule{Kind: CFARegister}}
	for _, pc := range []uint64{0xfff, 0x1010} {
		if err := f.RowAt(pc, &row); !errors.Is(err, ErrNoRow) || len(row.Rules) != 0 || row.CFA.Kind != NoCFA {
			t.Errorf("%#x: %v, row %s", pc, err, text(&row))
		}
	}
	if err := (&FDE{}).RowAt(0, &row); !errors.Is(err, ErrNoRow) {
		t.Error(err)
	}
}

func TestRowsStopWhenYieldSaysSo(t *testing.T) {
	b := ehFrame()
	b.fde(b.cie(cieSpec{instructions: x86Initial}), cieSpec{}, fdeSpec{start: 0x1000, size: 16, instructions: []byte{0x41, 0x41, 0x41, 0x3f}})
	f, err := b.table(t).FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := f.Rows(func(*Row) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
	for range b.table(t).FDEs() {
		break
	}
	for range b.table(t).CIEs() {
		break
	}
}

func TestCloneOutlivesTheRow(t *testing.T) {
	b := ehFrame()
	b.fde(b.cie(cieSpec{instructions: x86Initial}), cieSpec{}, fdeSpec{start: 0x1000, size: 16,
		instructions: []byte{0x83, 2, 0x41, 0x83, 3, 0x41, 0x16, 3, 1, 0x50}})
	f, err := b.table(t).FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	var clones []*Row
	var texts []string
	err = f.Rows(func(r *Row) bool {
		r.CallSite = append(r.CallSite[:0], RegisterRule{Column: r.Start})
		clones = append(clones, r.Clone())
		texts = append(texts, text(r))
		return true
	})
	if err != nil || len(clones) != 3 {
		t.Fatal(err, len(clones))
	}
	for i, c := range clones {
		if text(c) != texts[i] || c.CallSite[0].Column != c.Start {
			t.Errorf("clone %d is %s, was %s", i, text(c), texts[i])
		}
	}
	rule, ok := clones[1].Rule(3)
	if diff := cmp.Diff(Rule{Kind: Offset, Offset: -24}, rule); diff != "" || !ok {
		t.Errorf("rule of 3 (-want +got):\n%s", diff)
	}
	if rule, ok := clones[1].Rule(4); ok || rule.Kind != Unspecified {
		t.Errorf("rule of 4: %+v, %t", rule, ok)
	}
	// Expressions alias the section.
	rule, _ = clones[2].Rule(3)
	if &rule.Expr[0] != &b.Data[slices.Index(b.Data, 0x50)] {
		t.Error("the expression was copied")
	}
}

func TestTableIsSafeForConcurrentUse(t *testing.T) {
	path := library("libc.so.6")(t)
	table, f := elfTable(t, path, ".eh_frame")
	s := f.Section(".eh_frame_hdr")
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	var fdes []*FDE
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		fdes = append(fdes, f)
	}
	table, _ = elfTable(t, path, ".eh_frame")
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			if worker == 2 {
				if err := table.UseHeader(Section{Name: s.Name, Data: data, Address: s.Addr}); err != nil {
					t.Error(err)
				}
			}
			var row Row
			for i := range fdes {
				want := fdes[(i+worker*1000)%len(fdes)]
				f, err := table.FDE(want.Start)
				if err != nil || f.Offset != want.Offset {
					t.Errorf("%#x: %+v, %v", want.Start, f, err)
					return
				}
				if err := f.RowAt(f.End-1, &row); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// raceDetector says that allocations cannot be counted.
var raceDetector bool

// What the walk of a stack does for a frame that is in no cache must not
// allocate.
func TestAllocations(t *testing.T) {
	table, _ := elfTable(t, library("libc.so.6")(t), ".eh_frame")
	var pcs []uint64
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		pcs = append(pcs, f.Start+(f.End-f.Start)/2)
	}
	var row Row
	walk := func() {
		for _, pc := range pcs {
			f, err := table.FDE(pc)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.RowAt(pc, &row); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk()
	if raceDetector {
		t.Skip("allocations are not those of a build without the race detector")
	}
	if n := testing.AllocsPerRun(5, walk); n > 8 { // the garbage collector may empty the pool
		t.Errorf("%v allocations for %d lookups, want none", n, len(pcs))
	}
	f, err := table.FDE(pcs[len(pcs)/2])
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := f.Rows(func(*Row) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for the rows of an FDE, want none", n)
	}
	if size := unsafe.Sizeof(indexEntry{}); size > 16 {
		t.Errorf("an FDE takes %d bytes of the index, want 16 at most", size)
	}
	if n, c := len(table.indexes[0].entries), cap(table.indexes[0].entries); n > len(pcs) || c > len(pcs)+len(pcs)/8 {
		t.Errorf("index of %d entries, room for %d, for %d FDEs", n, c, len(pcs))
	}
}

func TestErrorsOfOneFDE(t *testing.T) {
	b := ehFrame()
	bad := b.cie(cieSpec{instructions: []byte{0x3f}})
	good := b.cie(cieSpec{instructions: x86Initial, factor: 1 << 40})
	b.fde(bad, cieSpec{}, fdeSpec{start: 0x1000, size: 16})
	b.fde(good, cieSpec{}, fdeSpec{start: 0x2000, size: 16, instructions: []byte{0x41, 0x0e, 16, 0x41, 0x3f}})
	b.fde(good, cieSpec{}, fdeSpec{start: 0x3000, size: 16, instructions: cat(0x86, uleb(1<<20), 0x41, 0x86, uleb(1<<23))})
	b.Data = append(b.Data, 0, 0, 0, 0)
	table := b.table(t)
	row := Row{Rules: []RegisterRule{{Column: 1}}}
	tests := []struct {
		name string
		pc   uint64
		want string
		err  error
	}{
		{"initial instructions", 0x1000, "", ErrInstruction},
		{"rows before an unknown instruction hold", 0x2000, "2000-2001 7+8 16:c+1099511627776", nil},
		{"the row before its own holds", 0x2001, "2001-2002 7+16 16:c+1099511627776", nil},
		{"the row it defines does not", 0x2002, "", ErrInstruction},
		{"a large offset", 0x3000, "3000-3001 7+8 6:c+1152921504606846976 16:c+1099511627776", nil},
		{"an offset that overflows", 0x3001, "", ErrOverflow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := table.FDE(tt.pc)
			if err != nil {
				t.Fatal(err)
			}
			err = f.RowAt(tt.pc, &row)
			if !errors.Is(err, tt.err) || err == nil && text(&row) != tt.want {
				t.Errorf("%s, %v, want %s, %v", text(&row), err, tt.want, tt.err)
			}
			if err != nil && (row.CFA.Kind != NoCFA || len(row.Rules) != 0) {
				t.Errorf("the row says %s after an error", text(&row))
			}
		})
	}
	for _, offset := range []uint64{bad, uint64(len(b.Data)) - 4} {
		if _, err := table.FDEAt(offset); !errors.Is(err, ErrNotFDE) {
			t.Errorf("FDE at %#x: %v, want %v", offset, err, ErrNotFDE)
		}
	}
	if _, err := table.FDEAt(1 << 40); !errors.Is(err, ErrTruncated) {
		t.Errorf("FDE behind the section: %v", err)
	}
}
