// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// TestRowsAreThoseOfCallFrameInformation reads every function of libraries that has call
// frame information, and compares its rows at every instruction. Wrong is a place that
// the call frame information contradicts; unknown is what no row says.
func TestRowsAreThoseOfCallFrameInformation(t *testing.T) {
	for _, path := range []string{
		"/usr/riscv64-linux-gnu/lib/libc.so.6", "/usr/riscv64-linux-gnu/lib/libstdc++.so.6", "/usr/riscv64-linux-gnu/lib/libgcc_s.so.1",
	} {
		t.Run(path, func(t *testing.T) {
			f, err := elf.Open(path)
			if err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skipf("Debian has it in libc6-riscv64-cross and libstdc++6-riscv64-cross: %v", err)
			}
			defer f.Close()
			frames, text := f.Section(".eh_frame"), f.Section(".text")
			table, err := cfi.NewTable(cfi.Section{Name: frames.Name, Data: data(t, frames), Address: frames.Addr, EH: true, Order: f.ByteOrder, AddressSize: 8})
			if err != nil {
				t.Fatal(err)
			}
			c := comparison{t: t, code: data(t, text), address: text.Addr}
			for fde, err := range table.FDEs() {
				if err != nil {
					t.Fatal(err)
				}
				c.compare(fde)
			}
			c.report()
			t.Logf("%d functions; of their instructions %d right, %d unknown, %d wrong", c.functions, c.right, c.unknown, c.wrong)
			if c.wrong > 0 || c.functions == 0 || c.unknown > c.right/10 {
				t.Errorf("expected none wrong, and at most a tenth unknown")
			}
		})
	}
}

func data(t *testing.T, s *elf.Section) []byte {
	t.Helper()
	b, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type comparison struct {
	t                                *testing.T
	code                             []byte
	address                          uint64
	functions, right, unknown, wrong int
	ahead                            aheadComparison
}

// compare reads the function of an FDE. One that does not begin with the frame of a call
// is a part of another function, which is entered by a jump.
func (c *comparison) compare(fde *cfi.FDE) {
	if fde.Start < c.address || fde.End > c.address+uint64(len(c.code)) {
		return
	}
	var row cfi.Row
	if err := fde.RowAt(fde.Start, &row); err != nil || row.CFA.Register != uint64(sp) || row.CFA.Offset != 0 || len(row.Rules) > 0 {
		return
	}
	c.functions++
	code := c.code[fde.Start-c.address : fde.End-c.address]
	f, err := readFunction(codeflow.OnePiece(0, code))
	isAfterCall := false
	for at := 0; at < len(code); {
		in, ok := decode(code[at:])
		if !ok {
			return
		}
		if err := fde.RowAt(fde.Start+uint64(at), &row); err != nil {
			c.t.Fatal(err)
		}
		switch {
		case err != nil || f.Point(uint64(at)) == nil:
			c.unknown++
		default:
			c.compareState(fde.Start+uint64(at), &f.Point(uint64(at)).State, &row)
		}
		if err == nil && f.Point(uint64(at)) != nil && c.ahead.isNext(isAfterCall) {
			c.compareAhead(fde.Start+uint64(at), isAfterCall, &f.Point(uint64(at)).State)
		}
		isAfterCall = in.effect == call
		at += in.length
	}
}

// compareState holds what the code says against a row: evaluated in the state, the row's
// CFA is the stack pointer at entry, and each rule finds what the register held there.
func (c *comparison) compareState(at uint64, st *state, want *cfi.Row) {
	if _, ok := st.row(); !ok || want.CFA.Kind != cfi.CFARegister {
		c.unknown++
		return
	}
	cfa := st.registers[want.CFA.Register].plus(want.CFA.Offset)
	if want.CFA.Register == uint64(t0) { // setcontext and swapcontext: of the frame that they will resume
		return
	}
	if cfa.kind == unknown { // by another register than ours
		c.unknown++
		return
	}
	if cfa != (value{kind: atEntry, base: sp}) {
		c.wrong++
		if c.wrong < 20 {
			c.t.Errorf("%#x: the CFA is %s%+d, which is %+v", at, integerNames[want.CFA.Register], want.CFA.Offset, cfa)
		}
		return
	}
	row, _ := st.row()
	for r := range uint32(len(st.registers)) {
		if r != ra && (!isPreserved(r) || r == zero || r == gp || r == tp) {
			continue
		}
		ours, oursSaid := row.Rule(uint64(r))
		theirs, theirsSaid := want.Rule(uint64(r))
		if oursSaid && ours.Kind == cfi.Undefined || theirsSaid && theirs.Kind == cfi.Undefined {
			continue
		}
		isRight := !theirsSaid || theirs.Kind == cfi.SameValue
		switch {
		case isRight: // in its register still
			isRight = st.registers[r] == value{kind: atEntry, base: r}
		case theirs.Kind == cfi.Offset:
			isRight = st.slot(theirs.Offset) == value{kind: atEntry, base: r} || !oursSaid
		}
		if !isRight {
			c.wrong++
			if c.wrong < 20 {
				c.t.Errorf("%#x: register %d: %+v, by call frame information %+v", at, r, ours, theirs)
			}
			return
		}
	}
	c.right++
}

// FuzzFunctionRows reads bytes that may be no code, and checks what the engine checks: rows
// are ascending, do not overlap, and lie in the code.
func FuzzFunctionRows(f *testing.F) {
	f.Add([]byte{0x41, 0x11, 0x06, 0xe4, 0xef, 0x00, 0x40, 0x00, 0xa2, 0x60, 0x41, 0x01, 0x82, 0x80}, false)
	f.Add([]byte{0x63, 0x00, 0x05, 0x00, 0x67, 0x80, 0x07, 0x00}, true)
	f.Fuzz(func(t *testing.T, code []byte, isExact bool) {
		const start = 0x1000
		rows, _ := functionRows(codeflow.OnePiece(start, code), isExact)
		last := uint64(start)
		for _, row := range rows {
			if row.Start < last || row.End <= row.Start || row.End > start+uint64(len(code)) {
				t.Fatalf("row %#x to %#x after %#x, of %d bytes", row.Start, row.End, last, len(code))
			}
			last = row.End
		}
	})
}
