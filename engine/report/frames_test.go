// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/locexpr"
)

// frames are the entries of a .debug_frame: a CIE with r7+8 and r16 at the CFA
// minus 8, and an FDE for each list of instructions.
func frames(t *testing.T, initial []byte, fdes ...[]byte) *CallFrames {
	t.Helper()
	entry := func(body []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	data := entry(append([]byte{0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, 16}, initial...))
	for i, instructions := range fdes {
		fde := []byte{0, 0, 0, 0}
		fde = binary.LittleEndian.AppendUint64(fde, 0x1000*uint64(i+1))
		fde = binary.LittleEndian.AppendUint64(fde, 0x100)
		data = append(data, entry(append(fde, instructions...))...)
	}
	table, err := cfi.NewTable(cfi.Section{Name: ".debug_frame", Data: data, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	return &CallFrames{
		File: "f.o",
		Entries: func(yield func(listing.CallFrameEntry, error) bool) {
			for e, err := range table.Entries() {
				if !yield(listing.CallFrameEntry{Section: ".debug_frame", Size: uint64(len(data)), Entry: e}, err) {
					return
				}
			}
		},
		Register:   func(n uint64) string { return fmt.Sprintf("r%d", n) },
		Space:      func(s locexpr.AddressSpace) string { return fmt.Sprintf("space%d", s) },
		Expression: func(b []byte) string { return fmt.Sprintf("<%x>", b) },
		Problem:    func(err error) { t.Errorf("problem: %v", err) },
	}
}

var initial = []byte{0x0c, 7, 8, 0x90, 1}

func rowsText(t *testing.T, c *CallFrames) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteRowsText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRowsAsTables(t *testing.T) {
	got := rowsText(t, frames(t, initial,
		[]byte{0x41, 0x0e, 16, 0x83, 2, 0x42, 0x30, 64, 4, 6, 0x10, 12, 1, 0x30, 0x16, 13, 1, 0x31, 0x09, 14, 15, 0x42, 0x0f, 1, 0x30, 0x08, 3, 0x07, 16, 0x14, 14, 0},
		[]byte{0x2d}))
	want := `.debug_frame+0x14  0x1000 to 0x1100
  address  CFA           r3      r12      r13         r14       r16
  0x1000   r7+8          -       -        -           -         cfa-8
  0x1001   r7+16         cfa-16  -        -           -         cfa-8
  0x1003   r64+4@space6  cfa-16  expr[1]  valexpr[2]  r15       cfa-8
  0x1005   expr[1]       same    expr[1]  valexpr[2]  valcfa+0  undefined
  [1] <30>
  [2] <31>

.debug_frame+0x4c  0x2000 to 0x2100
  address  CFA   r16    window
  0x2000   r7+8  cfa-8  saved
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Registers of which every row says the same are not columns where there are
// many.
func TestRowsWithManyColumns(t *testing.T) {
	instructions := []byte{}
	for n := byte(20); n < 30; n++ {
		instructions = append(instructions, 0x07, n)
	}
	instructions = append(instructions, 0x08, 30, 0x08, 31, 0x08, 40, 0x41, 0x08, 20)
	got := rowsText(t, frames(t, initial, instructions))
	want := `.debug_frame+0x14  0x1000 to 0x1100
  address  CFA   r16    r20
  0x1000   r7+8  cfa-8  undefined
  0x1001   r7+8  cfa-8  same
  undefined: r21 to r29
  same: r30, r31, r40
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAnFDEThatDefinesNothingHasNoRows(t *testing.T) {
	c := frames(t, []byte{0}, []byte{0, 0}, []byte{0x41, 0x07, 3})
	if got, want := rowsText(t, c), `.debug_frame+0x10  0x1000 to 0x1100
  no rules

.debug_frame+0x2a  0x2000 to 0x2100
  address  CFA  r3
  0x2000   -    -
  0x2001   -    undefined
`; got != want {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	var b bytes.Buffer
	if err := c.WriteRowsJSON(&b); err != nil {
		t.Fatal(err)
	}
	want := `{"fdes":[
 {"section":".debug_frame","offset":16,"start":"0x1000","end":"0x1100","rows":[]},
 {"section":".debug_frame","offset":42,"start":"0x2000","end":"0x2100","rows":[
  {"pc":"0x2000","rules":{}},
  {"pc":"0x2001","rules":{"r3":"undefined"}}]}
],"problems":[]}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A table ends before it takes much memory, and the next one goes on.
func TestRowsOfALongFDEAreSeveralTables(t *testing.T) {
	instructions := bytes.Repeat([]byte{0x40, 0x0e, 16}, tableCells)
	got := rowsText(t, frames(t, initial, instructions))
	if n := strings.Count(got, "address"); n != 3 {
		t.Errorf("%d tables, want 3", n)
	}
	if n := strings.Count(got, "0x1000   r7+16  cfa-8"); n != tableCells {
		t.Errorf("%d rows, want %d", n, tableCells)
	}
}

// Every row has all the rules of its CIE. What a section writes is bounded, and
// the JSON ends well.
func TestRowsOfAHostileSectionAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 800 MB")
	}
	hostile := append([]byte(nil), initial...)
	for n := range 4000 {
		hostile = append(hostile, 0x07, byte(n)|0x80, byte(n>>7))
	}
	c := frames(t, hostile, bytes.Repeat([]byte{0x40}, 1<<16))
	written := 0
	var tail []byte // of what is written in pieces of 64 KiB
	err := c.WriteRowsJSON(writerFunc(func(b []byte) (int, error) {
		written += len(b)
		tail = append(tail[:0], b[max(0, len(b)-1000):]...)
		return len(b), nil
	}))
	if err != nil || written > 2<<30 {
		t.Errorf("%d bytes, %v", written, err)
	}
	if !bytes.HasSuffix(tail, []byte("]}\n")) || !bytes.Contains(tail, []byte("limit exceeded")) {
		t.Errorf("ends with %s", tail)
	}
}

// A row may have one rule, each of another register.
func TestTablesOfAHostileSectionAreSmall(t *testing.T) {
	var instructions []byte
	for n := range 8000 {
		column := []byte{byte(n) | 0x80, byte(n>>7) | 0x80, 0}
		instructions = append(append(append(append(instructions, 0x07), column...), 0x41, 0x06), column...)
	}
	got := rowsText(t, frames(t, initial, instructions))
	if n := strings.Count(got, "address"); n < 10 || len(got) > 64<<20 {
		t.Errorf("%d tables, %d bytes", n, len(got))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestAWriteThatFailsEndsTheDump(t *testing.T) {
	full := errors.New("no space")
	for name, write := range map[string]func(*CallFrames, writerFunc) error{
		"rows":      func(c *CallFrames, w writerFunc) error { return c.WriteRowsText(w) },
		"rows json": func(c *CallFrames, w writerFunc) error { return c.WriteRowsJSON(w) },
		"cfi":       func(c *CallFrames, w writerFunc) error { return c.WriteCFIText(w) },
		"cfi json":  func(c *CallFrames, w writerFunc) error { return c.WriteCFIJSON(w) },
	} {
		calls := 0
		c := frames(t, initial, bytes.Repeat([]byte{0x41, 0x0e, 8}, 1<<15))
		if err := write(c, func([]byte) (int, error) { calls++; return 0, full }); !errors.Is(err, full) || calls != 1 {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
	}
}

func TestEntriesAsText(t *testing.T) {
	c := frames(t, initial, []byte{0x02, 0, 0x2f, 3, 2, 0x15, 4, 0x7f, 0x31, 64, 1, 6, 0x10, 12, 1, 0x30, 0x2e, 16, 0, 0, 0})
	var b bytes.Buffer
	if err := c.WriteCFIText(&b); err != nil {
		t.Fatal(err)
	}
	want := `.debug_frame, 65 bytes

00000000  CIE  version 4  augmentation ""  length 16
          code alignment 1, data alignment -8, return address r16, address size 8
          DW_CFA_def_cfa             r7, 8
          DW_CFA_offset              r16, cfa-8

00000014  FDE  0x1000 to 0x1100  CIE 00000000  length 41
          DW_CFA_advance_loc1        0 to 0x1000
          DW_CFA_GNU_negative_offset_extended r3, cfa+16
          DW_CFA_val_offset_sf       r4, valcfa+8
          DW_CFA_LLVM_def_aspace_cfa_sf r64, -8, space6
          DW_CFA_expression          r12, <30>
          DW_CFA_GNU_args_size       16
          DW_CFA_nop                 3 times
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	b.Reset()
	if err := c.WriteCFIJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v: %s", err, b.String())
	}
}

func TestPointerEncodingsHaveTheirNames(t *testing.T) {
	for e, want := range map[uint8]string{
		0x00: "DW_EH_PE_absptr", 0x1b: "DW_EH_PE_pcrel|DW_EH_PE_sdata4", 0x9b: "DW_EH_PE_indirect|DW_EH_PE_pcrel|DW_EH_PE_sdata4",
		0xff: "DW_EH_PE_omit", 0x50: "DW_EH_PE_aligned|DW_EH_PE_absptr", 0x05: "0x05", 0x60: "0x60",
	} {
		if got := pointerEncoding(e); got != want {
			t.Errorf("%#x: %s, want %s", e, got, want)
		}
	}
}

// TestWhatTheExtensionForbidsIsAProblem lists call frame information that A.6.4 calls
// ill-formed though it can be read.
func TestWhatTheExtensionForbidsIsAProblem(t *testing.T) {
	c := frames(t, initial, []byte{0x0f, 2, 0x91, 0}, []byte{0x30, 64, 4, 9}, []byte{0x09, 14, 15, 0x09, 15, 14}, []byte{0x30, 64, 4, 6, 0x10, 12, 2, 0x77, 0})
	c.Forbidden = func(expr []byte) error { return locexpr.CheckCFI(expr, locexpr.DWARF5, 8, locexpr.LittleEndian) }
	c.HasSpace = func(space locexpr.AddressSpace) bool { return space == 6 }
	for name, list := range map[string]struct {
		write func(io.Writer) error
		want  []string
	}{
		"cfi": {c.WriteCFIText, []string{
			"DW_CFA_def_cfa_expression: ill-formed expression: offset 0: DW_OP_fbreg: operation is not allowed in call frame information",
			"DW_CFA_LLVM_def_aspace_cfa: ill-formed call frame information: unknown address space: 9"}},
		"rows": {c.WriteRowsText, []string{
			"the CFA: ill-formed expression: offset 0: DW_OP_fbreg: operation is not allowed in call frame information",
			"ill-formed call frame information: unknown address space: the CFA is in space 9",
			"ill-formed call frame information: register rules lead to themselves: columns [14 15]"}},
	} {
		var got []string
		c.Problem = func(err error) { got = append(got, err.Error()) }
		if err := list.write(io.Discard); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(list.want) {
			t.Fatalf("%s: %q, expected %q", name, got, list.want)
		}
		for i := range got {
			if !strings.HasPrefix(got[i], "f.o: .debug_frame: offset ") || !strings.HasSuffix(got[i], list.want[i]) {
				t.Errorf("%s: %s, expected %s", name, got[i], list.want[i])
			}
		}
	}
}
