// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// A cfiFile is the code of a file with its call frame information.
type cfiFile struct {
	start uint64 // of .text
	code  []byte
	fdes  []*cfi.FDE // of .text
	names map[uint64]string
}

// openFile reads a file whose call frame information is in a section.
func openFile(t testing.TB, path, sectionName string) *cfiFile {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section, text := file.Section(sectionName), file.Section(".text")
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	f := &cfiFile{start: text.Addr, names: make(map[uint64]string)}
	symbols, err := file.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	for _, s := range symbols {
		f.names[s.Value] = s.Name
	}
	if f.code, err = text.Data(); err != nil {
		t.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: sectionName, Data: data, Address: section.Addr, EH: sectionName == ".eh_frame",
		Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if fde.Start >= text.Addr && fde.End <= text.Addr+text.Size && fde.End > fde.Start {
			f.fdes = append(f.fdes, fde)
		}
	}
	return f
}

// body is the code of a function.
func (f *cfiFile) body(fde *cfi.FDE) []byte { return f.code[fde.Start-f.start : fde.End-f.start] }

// A comparison counts instructions whose frames are compared with what call frame
// information says.
type comparison struct {
	all, right int
	partial    int // a register is unknown; CFA and return address are right
	unknown    int
	parts      int // of functions, which a jump enters in mid-frame
	restored   int // call frame information finds the CFA by an x29 that the code has restored
	unsigned   int // it has a signature behind a return that took it away
	wrong      []string
}

// note counts how a row compares.
func (c *comparison) note(how string, at uint64, fde *cfi.FDE) {
	switch how {
	case "":
		c.right++
	case "unknown":
		c.unknown++
	case "partial":
		c.partial++
	case "restored":
		c.restored++
	case "unsigned":
		c.unsigned++
	default:
		c.wrong = append(c.wrong, fmt.Sprintf("%#x of %#x-%#x: %s", at, fde.Start, fde.End, how))
	}
}

func (c *comparison) report(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d instructions, %d right, %d with unknown registers, %d unknown, %d of parts of functions, %d with a restored x29, %d without a signature, %d wrong",
		what, c.all, c.right, c.partial, c.unknown, c.parts, c.restored, c.unsigned, len(c.wrong))
	for i, w := range c.wrong {
		if i == 40 {
			break
		}
		t.Error(w)
	}
}

// isPart says whether an FDE is of a part of a function, which a jump enters in mid-frame.
func isPart(t testing.TB, fde *cfi.FDE) bool {
	t.Helper()
	var first cfi.Row
	if err := fde.RowAt(fde.Start, &first); err != nil {
		t.Fatal(err)
	}
	saves := func(r cfi.RegisterRule) bool { return r.Rule.Kind == cfi.Offset }
	return first.CFA.Register != uint64(sp) || first.CFA.Offset != 0 || slices.ContainsFunc(first.Rules, saves)
}

// compareFunctions holds the rows that are read from the code of every function of a file
// against its call frame information, at every instruction, or at calls alone.
func compareFunctions(t *testing.T, f *cfiFile, isGo, onlyCalls bool) *comparison {
	t.Helper()
	c := &comparison{}
	for _, fde := range f.fdes {
		code := f.body(fde)
		if isGo && isAssembly(f.names[fde.Start]) {
			continue
		}
		if isPart(t, fde) {
			c.all += len(code) / instructionSize
			c.parts += len(code) / instructionSize
			continue
		}
		flow := newFlow(codeflow.OnePiece(0, code), false)
		isRead := flow.run() == nil
		rows := frameRules(&sdk.CodeRange{PC: fde.Start, Start: fde.Start, Code: code, Bounded: true, Exact: true}).Rows
		for n := range uint64(len(flow.effects)) {
			at := fde.Start + n*instructionSize
			for len(rows) > 0 && rows[0].End <= at {
				rows = rows[1:]
			}
			if onlyCalls && flow.effect(n).kind != effectCall {
				continue
			}
			c.all++
			if !isRead || len(rows) == 0 || rows[0].Start > at {
				c.unknown++
				continue
			}
			var want cfi.Row
			if err := fde.RowAt(at, &want); err != nil {
				t.Fatal(err)
			}
			c.note(flow.Point(n).State.compare(&rows[0], &want, isGo), at, fde)
		}
	}
	return c
}

// isAssembly says whether a function of Go is written in assembly and may change stacks.
func isAssembly(name string) bool {
	return strings.HasSuffix(name, ".abi0") ||
		slices.Contains([]string{"runtime.debugCallV2", "runtime.switchToCrashStack0", "runtime.vgetrandom1"}, name)
}

// compareAhead holds the rows that are read from code without bounds against what the whole
// function says, at every step-th instruction, and at the call behind it.
func compareAhead(t *testing.T, f *cfiFile, step int) *comparison {
	t.Helper()
	c := &comparison{}
	n, isCallNext := 0, false
	for _, fde := range f.fdes {
		if isPart(t, fde) {
			continue
		}
		flow := newFlow(codeflow.OnePiece(0, f.body(fde)), false)
		if flow.run() != nil {
			continue
		}
		for p := range flow.All() {
			isCall := isCallNext && flow.effect(p.Address).kind == effectCall
			if n++; n%step != 0 && !isCall {
				continue
			}
			isCallNext = !isCall
			at := fde.Start + p.Address*instructionSize
			c.all++
			how := "unknown"
			if row, ok := f.rowWithoutBounds(at, !isCall); ok && !isAtTarget(t, fde, at) {
				how = p.State.holds(row)
			}
			c.note(how, at, fde)
		}
	}
	return c
}

// isAtTarget says whether call frame information leads to where the code goes on, as in
// longjmp.
func isAtTarget(t *testing.T, fde *cfi.FDE, at uint64) bool {
	t.Helper()
	var want cfi.Row
	if err := fde.RowAt(at, &want); err != nil {
		t.Fatal(err)
	}
	return want.CFA.Kind != cfi.CFARegister || want.CFA.Register == uint64(x0)
}

// rowWithoutBounds is the row at an address, or of a call there that has not returned, read
// from the code around it.
func (f *cfiFile) rowWithoutBounds(at uint64, isExact bool) (row *cfi.Row, ok bool) {
	const around = 8192
	first, end := max(f.start, at-min(at, around)), min(at+around, f.start+uint64(len(f.code)))
	r := sdk.CodeRange{PC: at, Start: first, Code: f.code[first-f.start : end-f.start], Exact: isExact}
	if !isExact {
		r.PC += instructionSize - 1
	}
	rules := frameRules(&r)
	if len(rules.Rows) == 0 {
		return nil, false
	}
	return &rules.Rows[0], true
}

// entered is what a preserved register held at the function's start, and now what it holds.
func (s *state) entered(r uint32, isSigned bool) (entered, now value) {
	switch {
	case r >= v8:
		return entryVectors[r-v8], s.vectors[r-v8]
	case r == x30 && isSigned:
		return value{kind: signedEntry}, s.gpr[r]
	}
	return entryValue(uint8(r)), s.gpr[r]
}

// preservedRegisters are those whose rules are compared.
func preservedRegisters(isGo bool) []uint32 {
	if isGo {
		return []uint32{x30}
	}
	return append(slices.Clone(calleeSaved), x30)
}

// check says whether a rule finds what a register held at the function's start.
func (s *state) check(r uint32, rule cfi.Rule, isSigned bool) (ok bool) {
	entered, now := s.entered(r, isSigned)
	switch rule.Kind {
	case cfi.Offset:
		return s.load(entryValue(gprSP).plus(rule.Offset), false) == entered
	case cfi.SameValue:
		return now == entered
	case cfi.Register:
		return s.gpr[rule.Register&31] == entered
	}
	return false
}

// holds says how a row differs from what a state knows: "" where it does not.
func (s *state) holds(row *cfi.Row) string {
	if v := s.gpr[row.CFA.Register&31]; v != entryValue(gprSP).plus(-row.CFA.Offset) {
		if v.kind == unknown {
			return "unknown"
		}
		return fmt.Sprintf("CFA x%d%+d, it is at %+v", row.CFA.Register, row.CFA.Offset, v)
	}
	how := ""
	for _, r := range preservedRegisters(false) {
		rule := ruleOf(row, r)
		entered, now := s.entered(r, row.WindowSave)
		switch {
		case rule.Kind == cfi.Undefined:
			how = "partial"
		case s.check(r, rule, row.WindowSave):
		case r != x30 && now != entered && !s.hasSaved(entered): // the state does not know it
			how = "partial"
		default:
			return fmt.Sprintf("register %d: %+v, the state is %+v", r, rule, now)
		}
	}
	return how
}

// compare says how a row that was read from code differs from one of call frame
// information; "" where it does not. Both may name different places of one value: the
// state knows whether each has it.
func (s *state) compare(got, want *cfi.Row, isGo bool) string {
	switch {
	// In setcontext, and where longjmp has begun to load registers, call frame
	// information leads to where the code goes on, by the buffer that x0 points to; what
	// is read from the code leads to the caller.
	case want.CFA.Kind != cfi.CFARegister || want.CFA.Register == uint64(x0):
		return "unknown"
	// GCC goes on finding the CFA by x29 behind the instruction that restores it, in
	// functions that take the address of their frame.
	case want.CFA.Register == uint64(x29) && s.gpr[gprX29] == entryValue(gprX29):
		return "restored"
	case s.gpr[want.CFA.Register&31] != entryValue(gprSP).plus(-want.CFA.Offset):
		return fmt.Sprintf("CFA x%d%+d, call frame information has x%d%+d", got.CFA.Register, got.CFA.Offset, want.CFA.Register, want.CFA.Offset)
	// Clang does not put back what it says of signatures behind RETAA, for a part that is
	// entered before PACIASP.
	case want.WindowSave && s.gpr[gprX30] == entryValue(gprX30) && s.isUntouched():
		return "unsigned"
	case got.WindowSave != want.WindowSave:
		return fmt.Sprintf("signed %v, call frame information has %v", got.WindowSave, want.WindowSave)
	}
	how := ""
	for _, r := range preservedRegisters(isGo) {
		theirs, ours := ruleOf(want, r), ruleOf(got, r)
		switch {
		case ours.Kind == cfi.Undefined || theirs.Kind == cfi.Undefined:
			how = "partial"
		case !s.check(r, theirs, got.WindowSave):
			return fmt.Sprintf("register %d: %+v, call frame information has %+v", r, ours, theirs)
		}
	}
	return how
}

// isUntouched says whether the frame is as at the function's start.
func (s *state) isUntouched() bool { return s.gpr[gprSP] == entryValue(gprSP) && len(s.slots) == 0 }

// ruleOf is the rule of a register, the ABI's where none is said.
func ruleOf(row *cfi.Row, register uint32) cfi.Rule {
	for _, r := range row.Rules {
		if r.Column == uint64(register) && r.Rule.Kind != cfi.Unspecified {
			return r.Rule
		}
	}
	return cfi.Rule{Kind: cfi.SameValue}
}

// libraries are the files of a C and C++ cross compiler, and those that
// UNWINDD_AARCH64_FILES names.
func libraries(t *testing.T) []string {
	t.Helper()
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++")
	const folder = "/usr/aarch64-linux-gnu/lib/"
	paths := []string{folder + "libc.so.6", folder + "libstdc++.so.6", folder + "libm.so.6"}
	return append(paths, filepath.SplitList(os.Getenv("UNWINDD_AARCH64_FILES"))...)
}

// TestLibraries: no frame that is read from the code of a C library and of C++'s is
// another one than call frame information says.
func TestLibraries(t *testing.T) {
	for _, path := range libraries(t) {
		c := compareFunctions(t, openFile(t, path, ".eh_frame"), false, false)
		c.report(t, path)
		if c.right < c.all*9/10 || c.right+c.partial < c.all*98/100 {
			t.Errorf("%s: %d of %d instructions are right, %d with unknown registers; expected 90 of 100, and 98 with those", path, c.right, c.all, c.partial)
		}
	}
}

// TestLibrariesWithoutBounds: no frame that is read from the code around an instruction is
// another one than that of the whole function.
func TestLibrariesWithoutBounds(t *testing.T) {
	for _, path := range libraries(t) {
		c := compareAhead(t, openFile(t, path, ".eh_frame"), 211)
		c.report(t, path)
		if c.right+c.partial < c.all*2/3 {
			t.Errorf("%s: of %d PCs %d are right, and %d with unknown registers; expected two of three", path, c.all, c.right, c.partial)
		}
	}
}
