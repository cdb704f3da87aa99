// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
)

// advances clones the rows of Advances.
func advances(f *FDE) (rows []*Row, err error) {
	err = f.Advances(func(r *Row) bool {
		rows = append(rows, r.Clone())
		return true
	})
	return rows, err
}

// merged are the rows that Rows must give: of those that begin at one address
// the last, and none behind the FDE.
func merged(f *FDE, rows []*Row) []*Row {
	var out []*Row
	for i, r := range rows {
		if f.Start >= f.End || r.Start >= f.End || i+1 < len(rows) && rows[i+1].Start == r.Start {
			continue
		}
		r.End = min(r.End, f.End)
		out = append(out, r)
	}
	return out
}

func sameRows(t *testing.T, f *FDE) int {
	t.Helper()
	all, err := advances(f)
	var want []*Row
	wantErr := f.Rows(func(r *Row) bool {
		want = append(want, r.Clone())
		return true
	})
	if wantErr != nil || err != nil {
		// Rows behind End are not looked at.
		if wantErr != nil && (err == nil || err.Error() != wantErr.Error()) {
			t.Errorf("FDE at %#x: %v, Rows gives %v", f.Offset, err, wantErr)
		}
		return 0
	}
	got := merged(f, all)
	equal := func(a, b *Row) bool {
		return a.Start == b.Start && a.End == b.End && reflect.DeepEqual(a.CFA, b.CFA) && a.WindowSave == b.WindowSave &&
			slices.EqualFunc(a.Rules, b.Rules, func(x, y RegisterRule) bool { return reflect.DeepEqual(x, y) })
	}
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("FDE at %#x: advances\n%v\nRows\n%v", f.Offset, got, want)
	}
	return len(all)
}

func TestAdvancesAreRowsAsWritten(t *testing.T) {
	for _, file := range []func(*testing.T) string{library("libc.so.6"), library("libstdc++.so.6")} {
		table, _ := elfTable(t, file(t), ".eh_frame")
		rows, fdes := 0, 0
		for f, err := range table.FDEs() {
			if err != nil {
				t.Fatal(err)
			}
			fdes++
			rows += sameRows(t, f)
		}
		t.Logf("%d FDEs, %d rows", fdes, rows)
		if fdes < 2000 || rows < 10000 {
			t.Errorf("%d FDEs, %d rows", fdes, rows)
		}
	}
}

// oneFDE is the FDE of a section with these instructions, at 0x1000 to 0x1100.
func oneFDE(t *testing.T, instructions ...byte) *FDE {
	t.Helper()
	table := instructionTable(t, instructions)
	for e, err := range table.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.FDE != nil {
			return e.FDE
		}
	}
	t.Fatal("no FDE")
	return nil
}

// instructionTable is a .debug_frame of one CIE, rsp+8, and one FDE.
func instructionTable(t *testing.T, instructions []byte) *Table {
	t.Helper()
	entry := func(body []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	data := entry([]byte{0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1})
	fde := []byte{0, 0, 0, 0}
	fde = binary.LittleEndian.AppendUint64(fde, 0x1000)
	fde = binary.LittleEndian.AppendUint64(fde, 0x100)
	data = append(data, entry(append(fde, instructions...))...)
	data = append(data, 0, 0, 0, 0)
	table, err := NewTable(Section{Name: ".debug_frame", Data: data, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestAdvancesByNothingAndBeyondTheEnd(t *testing.T) {
	f := oneFDE(t, 0x40, 0x0e, 16, 0x02, 0, 0x0e, 24, 0x03, 0x00, 0x02, 0x0e, 32)
	rows, err := advances(f)
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]uint64
	for _, r := range rows {
		got = append(got, [3]uint64{r.Start, r.End, uint64(r.CFA.Offset)})
	}
	want := [][3]uint64{{0x1000, 0x1000, 8}, {0x1000, 0x1000, 16}, {0x1000, 0x1200, 24}, {0x1200, 0x1100, 32}}
	if !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestAdvancesEndWithTheErrorOfRows(t *testing.T) {
	f := oneFDE(t, 0x41, 0x0e, 16, 0x42, 0x3a, 0x41)
	rows, err := advances(f)
	var e *Error
	if len(rows) != 2 || !errors.Is(err, ErrInstruction) || !errors.As(err, &e) || e.Offset == 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestEntriesAreListedAsWritten(t *testing.T) {
	table := instructionTable(t, []byte{0})
	var got []string
	for e, err := range table.Entries() {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.CIE != nil && e.FDE == nil && e.Length == 16 && e.Offset == 0:
			got = append(got, "CIE")
		case e.FDE != nil && e.CIE == nil && e.Length == 21 && e.Offset == 20:
			got = append(got, "FDE")
		case e.CIE == nil && e.FDE == nil && e.Length == 0 && e.Offset == 45:
			got = append(got, "terminator")
		default:
			t.Errorf("entry %+v", e)
		}
	}
	if !slices.Equal(got, []string{"CIE", "FDE", "terminator"}) {
		t.Errorf("%q", got)
	}
}

func TestInstructionsHaveOperandsInBytes(t *testing.T) {
	f := oneFDE(t, 0x42, 0x0c, 6, 16, 0x11, 3, 0x7e, 0x10, 12, 2, 0x77, 8, 0x30, 64, 4, 6, 0x01, 0, 0x20, 0, 0, 0, 0, 0, 0)
	negative := int64(-8) // the data alignment factor
	want := []struct {
		name     string
		location uint64
		operands []Operand
	}{
		{"DW_CFA_advance_loc", 0x1002, []Operand{{Kind: AdvanceOperand, Value: 2}}},
		{"DW_CFA_def_cfa", 0x1002, []Operand{{Kind: RegisterOperand, Value: 6}, {Kind: OffsetOperand, Value: 16}}},
		{"DW_CFA_offset_extended_sf", 0x1002, []Operand{{Kind: RegisterOperand, Value: 3}, {Kind: OffsetOperand, Value: uint64(-2 * negative)}}},
		{"DW_CFA_expression", 0x1002, []Operand{{Kind: RegisterOperand, Value: 12}, {Kind: ExpressionOperand, Expr: []byte{0x77, 8}}}},
		{"DW_CFA_LLVM_def_aspace_cfa", 0x1002, []Operand{{Kind: RegisterOperand, Value: 64}, {Kind: OffsetOperand, Value: 4}, {Kind: SpaceOperand, Value: 6}}},
		{"DW_CFA_set_loc", 0x2000, []Operand{{Kind: AddressOperand, Value: 0x2000}}},
	}
	n := 0
	for instruction, err := range f.Instructions() {
		if err != nil {
			t.Fatal(err)
		}
		if n < len(want) && (instruction.Name != want[n].name || instruction.Location != want[n].location || !reflect.DeepEqual(instruction.Operands, want[n].operands)) {
			t.Errorf("%+v, want %+v", instruction, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d instructions, want %d", n, len(want))
	}
}

// FuzzEntries lists all that a section says as it is written. What Rows says
// must be part of it.
func FuzzEntries(f *testing.F) {
	f.Add(false, []byte{0x40, 0x0e, 16, 0x02, 0, 0x0e, 24, 0x03, 0x00, 0x02, 0x0e, 32})
	f.Add(true, []byte{0x0a, 0x10, 12, 2, 0x77, 8, 0x0b, 0xc3, 0x0f, 1, 0x31})
	if data, err := os.ReadFile("testdata/frames.c"); err == nil {
		f.Add(true, data[:64])
	}
	f.Fuzz(func(t *testing.T, whole bool, data []byte) {
		table := instructionTable(t, data)
		if whole {
			var err error
			table, err = NewTable(Section{Name: ".eh_frame", Data: data, Order: binary.LittleEndian, AddressSize: 8, EH: true})
			if err != nil {
				t.Fatal(err)
			}
		}
		last := uint64(0)
		for e, err := range table.Entries() {
			if e.Offset < last || e.Offset > uint64(math.MaxInt32) {
				t.Fatalf("entry at %#x after %#x", e.Offset, last)
			}
			last = e.Offset
			if err != nil {
				continue
			}
			if e.CIE != nil {
				for range e.CIE.Instructions() {
				}
			}
			if e.FDE != nil {
				for instruction := range e.FDE.Instructions() {
					if instruction.Offset < e.Offset || instruction.Offset > uint64(len(table.section.Data)) {
						t.Fatalf("instruction at %#x of the entry at %#x", instruction.Offset, e.Offset)
					}
				}
				sameRows(t, e.FDE)
			}
		}
	})
}
