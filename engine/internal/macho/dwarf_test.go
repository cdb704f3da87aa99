// SPDX-License-Identifier: Apache-2.0

package macho_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// machO opens a Mach-O file.
func machO(t testing.TB, path string) *macho.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := macho.New(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// frameTable opens a section of call frame information; nil where there is none.
func frameTable(t testing.TB, path, name string) *cfi.Table {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	s := o.Section(name)
	if s == nil {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: name, Data: data, Address: s.Address, EH: name == ".eh_frame", AddressSize: 8, Order: o.ByteOrder()})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// text is a row's rules on a line.
func text(r *cfi.Row) string {
	s := fmt.Sprintf("CFA=%d+%d", r.CFA.Register, r.CFA.Offset)
	for _, rule := range r.Rules {
		switch rule.Rule.Kind {
		case cfi.Offset:
			s += fmt.Sprintf(" %d=cfa%+d", rule.Column, rule.Rule.Offset)
		case cfi.SameValue, cfi.Unspecified:
		default:
			s += fmt.Sprintf(" %d:%+v", rule.Column, rule.Rule)
		}
	}
	return s
}

// checkBodies compares the row of each function's entry with the last one of its DWARF: Clang's is right at
// calls and behind the prologue, and has no rows of epilogues.
func checkBodies(t *testing.T, p *machotest.Program) (count map[string]int) {
	t.Helper()
	count = map[string]int{}
	f := machO(t, p.Path)
	u, err := f.UnwindInfo()
	if err != nil || u == nil {
		t.Fatalf("%s: %v, %v", p.Path, u, err)
	}
	table, eh := frameTable(t, p.DSYM, ".debug_frame"), frameTable(t, p.Path, ".eh_frame")
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		var want, got cfi.Row
		if err := fde.RowAt(fde.End-1, &want); err != nil {
			t.Fatal(err)
		}
		e, ok, err := u.At(fde.Start)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			count["no entry"]++
			continue
		}
		if e.Start > fde.Start || e.End < fde.End {
			t.Errorf("%s: %#x to %#x: entry %+v", p.Path, fde.Start, fde.End, e)
		}
		count[u.ModeName(e.Encoding)]++
		switch u.Mode(e.Encoding) {
		case macho.NoUnwind:
			continue
		case macho.DWARFMode:
			kept, err := eh.FDEAt(e.Encoding.FDE())
			if err != nil || kept.Start != fde.Start {
				t.Errorf("%s: %#x: FDE at %#x: %+v, %v", p.Path, fde.Start, e.Encoding.FDE(), kept, err)
				continue
			}
			if err := kept.RowAt(fde.End-1, &got); err != nil {
				t.Error(err)
			}
		default:
			if err := u.Row(&e, &got); err != nil {
				t.Error(err)
				continue
			}
		}
		if text(&got) != text(&want) || got.ReturnAddress != want.ReturnAddress {
			t.Errorf("%s: %#x to %#x: encoding %#x: %s, expected %s", filepath.Base(p.Path), fde.Start, fde.End, uint32(e.Encoding), text(&got), text(&want))
		}
	}
	return count
}

// TestRowsOfBodiesAreThoseOfDWARF compares the rows of compact unwind encodings with DWARF's.
func TestRowsOfBodiesAreThoseOfDWARF(t *testing.T) {
	oracle.All(t)
	total := map[string]int{}
	list := machotest.Programs(t, "testdata")
	for i := range list {
		for mode, n := range checkBodies(t, &list[i]) {
			total[mode] += n
		}
	}
	t.Log(total)
}
