// SPDX-License-Identifier: Apache-2.0

package code

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// aarch64Module compiles or assembles a file of testdata for AArch64.
func aarch64Module(t *testing.T, source string, command ...string) *Module {
	t.Helper()
	out := filepath.Join(t.TempDir(), "lib.so")
	oracle.Run(t, oracle.Tool(t, command[0]), append(command[1:], "-shared", "-nostdlib", "-o", out, filepath.Join("testdata", source))...)
	file := moduleOf(t, nil, out)
	file.Arch = "aarch64"
	m := newLibrary(t, 0, aarch64.New()).Load(file, Loading{})
	t.Cleanup(func() { m.Close() })
	return m
}

// aRowOf says where a row has the CFA and the return address.
func aRowOf(r *cfi.Row) string {
	back, _ := r.Rule(30)
	if back.Kind == cfi.Unspecified {
		back.Kind = cfi.SameValue
	}
	return fmt.Sprintf("CFA x%d+%d, x30 %v %d", r.CFA.Register, r.CFA.Offset, back.Kind, back.Offset)
}

// isSameFrame says whether two rows are of one frame. before is the function's code up to there.
// The return address may be in its register and in the frame at once, but not behind a call.
func isSameFrame(got, want *cfi.Row, before []byte) bool {
	if got.CFA.Register == want.CFA.Register && got.CFA.Offset != want.CFA.Offset {
		return false
	}
	own, _ := got.Rule(30)
	table, _ := want.Rule(30)
	if own.Kind == cfi.Offset || table.Kind != cfi.Offset {
		return aRowOf(&cfi.Row{Rules: got.Rules}) == aRowOf(&cfi.Row{Rules: want.Rules})
	}
	if len(before) < 4 {
		return true
	}
	w := binary.LittleEndian.Uint32(before[len(before)-4:])
	return w>>26 != 0x25 && w&0xfffffc1f != 0xd63f0000 // BL, BLR
}

// TestCallFrameInformationIsReadBesideTheCodeBetweenCalls compiles functions with call frame
// information that is right at calls alone, and with that which is right everywhere: at every
// instruction the rows are the same, found by the code and by the tables.
func TestCallFrameInformationIsReadBesideTheCodeBetweenCalls(t *testing.T) {
	clang := []string{"clang-22", "--target=aarch64-linux-gnu", "-fuse-ld=lld-22", "-O2", "-fomit-frame-pointer", "-fPIC"}
	atCalls := aarch64Module(t, "betweencalls.c", append(clang, "-fno-asynchronous-unwind-tables", "-funwind-tables")...)
	everywhere := aarch64Module(t, "betweencalls.c", append(clang, "-fasynchronous-unwind-tables")...)
	starts, read := startsOf(t, atCalls.Code), 0
	if want := startsOf(t, everywhere.Code); len(starts) != len(want) {
		t.Fatalf("%d functions, expected %d", len(starts), len(want))
	}
	for i, start := range startsOf(t, everywhere.Code) {
		fde, err := everywhere.Code.rows.frames[0].FDE(start)
		if err != nil {
			t.Fatal(err)
		}
		code := make([]byte, fde.End-start)
		if _, err := everywhere.Code.readCode(start, code); err != nil {
			t.Fatal(err)
		}
		for at := range fde.End - start {
			if at%4 != 0 {
				continue
			}
			want, err := everywhere.Row(t.Context(), start+at, true)
			if err != nil {
				t.Fatal(err)
			}
			got, err := atCalls.Row(t.Context(), starts[i]+at, true)
			if err != nil {
				t.Fatal(err)
			}
			if got.By == trace.ByRules {
				read++
			}
			if !isSameFrame(got.Rules, want.Rules, code[:at]) {
				t.Errorf("function %d, instruction %#x: %s, expected %s", i, at, aRowOf(got.Rules), aRowOf(want.Rules))
			}
		}
	}
	if read == 0 {
		t.Error("no row was read from code")
	}
}

// TestRowsBeforeThePrologueAreNotBelieved has a function whose only row is of its frame, before
// it has made that: its own code says what holds. A part that another function jumps into has
// such a row, too, and its code does not make the frame: there the row counts.
func TestRowsBeforeThePrologueAreNotBelieved(t *testing.T) {
	m := aarch64Module(t, "beforeprologue.s", "clang-22", "--target=aarch64-linux-gnu", "-fuse-ld=lld-22")
	starts := startsOf(t, m.Code)
	entry := aRowOf(&cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 31}})
	inFrame := aRowOf(&cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 31, Offset: 16}, Rules: []cfi.RegisterRule{{Column: 30, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}}}})
	part := aRowOf(&cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 31, Offset: 32}, Rules: []cfi.RegisterRule{{Column: 30, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -32}}}})
	for i, want := range [][]string{
		{entry, entry, entry, inFrame, inFrame, entry},
		{part, part, part, part},
	} {
		for n, want := range want {
			row, err := m.Row(t.Context(), starts[i]+uint64(4*n), true)
			if err != nil {
				t.Fatal(err)
			}
			if got := aRowOf(row.Rules); got != want {
				t.Errorf("function %d, instruction %d: %s, expected %s", i, n, got, want)
			}
		}
	}
}

// TestColdPartsKeepTheirRows compiles a function of which GCC puts a part elsewhere, whose
// tables are right at every instruction: no row is read from the code.
func TestColdPartsKeepTheirRows(t *testing.T) {
	for _, level := range []string{"-O1", "-O2", "-Os"} {
		m := aarch64Module(t, "betweencalls.c", "aarch64-linux-gnu-gcc", level, "-fPIC", "-freorder-blocks-and-partition")
		for _, start := range startsOf(t, m.Code) {
			fde, err := m.Code.rows.frames[0].FDE(start)
			if err != nil {
				t.Fatal(err)
			}
			for at := start; at < fde.End; at += 4 {
				var want cfi.Row
				if err := fde.RowAt(at, &want); err != nil {
					t.Fatal(err)
				}
				row, err := m.Row(t.Context(), at, true)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := aRowOf(row.Rules), aRowOf(&want); got != want {
					t.Errorf("%s: %#x: %s, expected %s", level, at, got, want)
				}
			}
		}
	}
}
