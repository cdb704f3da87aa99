// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// A comparison counts instructions whose frames are compared with what call frame
// information says.
type comparison struct {
	all, right, unknown, parts int
	wrong                      []string
}

// compareRows holds the rows that are read from the code of every function of a file
// against its .eh_frame, at every instruction.
func compareRows(t *testing.T, path string) *comparison {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".eh_frame")
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	text := file.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: ".eh_frame", Data: data, Address: section.Addr, EH: true, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{}
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if fde.Start < text.Addr || fde.End > text.Addr+text.Size || fde.End <= fde.Start {
			continue
		}
		c.function(t, fde, code[fde.Start-text.Addr:fde.End-text.Addr])
	}
	return c
}

func (c *comparison) function(t *testing.T, fde *cfi.FDE, code []byte) {
	var first cfi.Row
	if err := fde.RowAt(fde.Start, &first); err != nil {
		t.Fatal(err)
	}
	size := len(code) / instructionSize
	c.all += size
	saves := func(r cfi.RegisterRule) bool { return r.Rule.Kind == cfi.Offset }
	if first.CFA.Register != uint64(sp) || first.CFA.Offset != 0 || slices.ContainsFunc(first.Rules, saves) {
		c.parts += size // of a function, which a jump enters in mid-frame
		return
	}
	f := newFlow(code)
	if err := f.run(); err != nil {
		c.unknown += size
		return
	}
	rows := frameRules(&sdk.CodeRange{PC: fde.Start, Start: fde.Start, Code: code, Bounded: true, Exact: true}).Rows
	for at, s := range f.states {
		at := fde.Start + uint64(at)*instructionSize
		i := slices.IndexFunc(rows, func(r cfi.Row) bool { return at >= r.Start && at < r.End })
		if i < 0 {
			c.unknown++
			continue
		}
		var want cfi.Row
		if err := fde.RowAt(at, &want); err != nil {
			t.Fatal(err)
		}
		switch how := s.compare(&rows[i], &want); how {
		case "":
			c.right++
		case "unknown":
			c.unknown++
		default:
			c.wrong = append(c.wrong, fmt.Sprintf("%#x of %#x-%#x: %s", at, fde.Start, fde.End, how))
		}
	}
}

// compare says how a row that was read from code differs from one of call frame
// information; "" where it does not. Both may name different places of one value: the
// state knows whether each has it.
func (s *state) compare(got, want *cfi.Row) string {
	// In setcontext, and where longjmp has begun to load registers, call frame
	// information leads to where the code goes on, by the buffer that x0 points to; what
	// is read from the code leads to the caller.
	if want.CFA.Kind != cfi.CFARegister || want.CFA.Register == uint64(x0) {
		return "unknown"
	}
	if v := s.gpr[want.CFA.Register&31]; v != (value{kind: address, n: -want.CFA.Offset}) {
		return fmt.Sprintf("CFA x%d%+d, call frame information has x%d%+d", got.CFA.Register, got.CFA.Offset, want.CFA.Register, want.CFA.Offset)
	}
	if got.WindowSave != want.WindowSave {
		return fmt.Sprintf("signed %v, call frame information has %v", got.WindowSave, want.WindowSave)
	}
	isUnknown := false
	for r := x19; r < v8+8; r++ {
		if r > x30 && r < v8 {
			continue
		}
		entered, held := value{kind: entry, reg: uint8(r)}, s.gpr[r&31]
		if r >= v8 {
			entered, held = value{kind: entryVector, reg: uint8(r - v0)}, s.vectors[r-v8]
		}
		if r == x30 && got.WindowSave {
			entered = value{kind: signedEntry}
		}
		theirs, ours := ruleOf(want, r), ruleOf(got, r)
		switch {
		case ours.Kind == cfi.Undefined || theirs.Kind == cfi.Undefined:
			isUnknown = true
		case theirs.Kind == cfi.Offset && s.load(value{kind: address, n: theirs.Offset}) == entered:
		case theirs.Kind == cfi.SameValue && held == entered:
		case theirs.Kind == cfi.Register && s.gpr[theirs.Register&31] == entered:
		default:
			return fmt.Sprintf("register %d: %+v, call frame information has %+v", r, ours, theirs)
		}
	}
	if isUnknown {
		return "unknown"
	}
	return ""
}

// ruleOf is the rule of a register, the ABI's where none is said.
func ruleOf(row *cfi.Row, register uint32) cfi.Rule {
	for _, r := range row.Rules {
		if r.Column == uint64(register) && r.Rule.Kind != cfi.Unspecified {
			return r.Rule
		}
	}
	return cfi.Rule{Kind: cfi.SameValue}
}

// TestLibraries: no frame that is read from the code of a C library and of C++'s is
// another one than call frame information says.
func TestLibraries(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++")
	paths := []string{"/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libstdc++.so.6"}
	paths = append(paths, filepath.SplitList(os.Getenv("UNWINDD_AARCH64_FILES"))...)
	for _, path := range paths {
		c := compareRows(t, path)
		t.Logf("%s: %d instructions, %d right, %d unknown, %d of parts of functions, %d wrong", path, c.all, c.right, c.unknown, c.parts, len(c.wrong))
		for i, w := range c.wrong {
			if i == 40 {
				break
			}
			t.Error(w)
		}
		if c.right < c.all*4/5 {
			t.Errorf("%s: %d of %d instructions are right, expected four of five", path, c.right, c.all)
		}
	}
}
