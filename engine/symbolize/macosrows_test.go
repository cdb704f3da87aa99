// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// macosPlugins are the architectures of macOS.
func macosPlugins(t *testing.T) *plugin.Manager {
	t.Helper()
	m, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// writeMacOS writes the symbol file of a program of macOS, and reads it. Without plugins no code is read.
func writeMacOS(t *testing.T, path string, plugins *plugin.Manager) *written {
	t.Helper()
	var o symbolize.Options
	if plugins != nil {
		o.Plugins = func() (*plugin.Manager, error) { return plugins, nil }
	}
	s := symbolize.New(o)
	t.Cleanup(func() { _ = s.Close() })
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &written{file: f}
	w.base, _ = f.Object.ImageBase()
	var out bytes.Buffer
	if w.WrittenSymbols, err = f.WriteSymbolFile(&out); err != nil || w.Unwritten > 0 {
		t.Fatalf("%s: %+v, %v", path, w.WrittenSymbols, err)
	}
	w.text = out.String()
	if w.sym, err = breakpad.Read(path+".sym", out.Bytes()); err != nil {
		t.Fatal(path, err)
	}
	return w
}

// unwindPrograms are small programs whose frames are of all modes of compact unwind encodings.
func unwindPrograms() (list []string) {
	for _, m := range macosMachines {
		list = append(list, filepath.Join("../internal/macho/testdata", "unwind-"+m))
	}
	return list
}

// returnColumns are the columns of return addresses by machine.
var returnColumns = map[string]uint64{"arm64": 30, "x86_64": 16}

// row returns the row at an address by the symbol file; nil where there is none.
func (w *written) row(t *testing.T, address uint64) *cfi.Row {
	t.Helper()
	o := w.file.Object
	var row cfi.Row
	found, err := w.sym.Row(&row, address-w.base, registersOf(o.Machine(), returnColumns[o.MachO().MachineName()]))
	if err != nil {
		t.Fatalf("%s: %#x: %v", o.Name(), address, err)
	}
	if !found {
		return nil
	}
	return &row
}

// TestSymbolFilesHaveCompactUnwind wants the row of each entry at each address of it, where no FDE has it, and no code is
// read; and one record for each address.
func TestSymbolFilesHaveCompactUnwind(t *testing.T) {
	for _, path := range unwindPrograms() {
		w := writeMacOS(t, path, nil)
		info, err := w.file.Object.MachO().UnwindInfo()
		if err != nil {
			t.Fatal(err)
		}
		modes := map[string]int{}
		for e, err := range info.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			mode := info.Mode(e.Encoding)
			modes[info.ModeName(e.Encoding)]++
			for at := e.Start; at < e.End; at++ {
				got := w.row(t, at)
				var want cfi.Row
				if mode == macho.NoUnwind || mode == macho.DWARFMode {
					continue
				}
				if err := info.Row(&e, &want); err != nil {
					t.Fatal(err)
				}
				if got == nil || rowDifference(&want, got) != "" {
					t.Fatalf("%s: %#x: %+v, expected %+v", path, at, got, want)
				}
			}
		}
		t.Log(path, modes)
		checkDisjoint(t, w.text)
	}
}

// checkDisjoint wants no two STACK CFI INIT records to have the same code, and the records by address.
func checkDisjoint(t *testing.T, text string) {
	t.Helper()
	last, records := uint64(0), 0
	for line := range strings.Lines(text) {
		var start, size uint64
		if _, err := fmt.Sscanf(line, "STACK CFI INIT %x %x ", &start, &size); err != nil {
			continue
		}
		if start < last || size == 0 {
			t.Errorf("%s: the record before it ends at %#x", line, last)
		}
		last = start + size
		records++
	}
	if records == 0 {
		t.Error("no STACK CFI INIT records")
	}
}

// TestSymbolFilesHaveTheRowsOfWalks wants, at each instruction of a program's functions, the row by which unwindd walks from there
// with the program.
func TestSymbolFilesHaveTheRowsOfWalks(t *testing.T) {
	for _, path := range unwindPrograms() {
		compareWithWalks(t, path, map[string]int{})
	}
}

// TestSymbolFilesHaveTheRowsOfWalksOfManyPrograms is the same of programs of Clang at all levels of optimization.
func TestSymbolFilesHaveTheRowsOfWalksOfManyPrograms(t *testing.T) {
	oracle.All(t)
	total := map[string]int{}
	rows := 0
	for _, p := range machotest.Programs(t, "../internal/macho/testdata") {
		compareWithWalks(t, alone(t, p.Path), total)
		rows += checkFDEs(t, p.Path)
	}
	t.Log(total, rows)
}

// checkFDEs wants the rows of the FDEs of a program's dSYM, where no code is read.
func checkFDEs(t *testing.T, path string) (rows int) {
	t.Helper()
	w := writeMacOS(t, path, nil)
	for _, table := range code.FrameTables(w.file.Debug) {
		for fde, err := range table.FDEs() {
			if err == nil {
				err = fde.Rows(func(want *cfi.Row) bool {
					if got := w.row(t, want.Start); got == nil || rowDifference(want, got) != "" {
						t.Errorf("%s: %#x: %+v, expected %s", path, want.Start, got, macRowText(want))
					}
					rows++
					return true
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	checkDisjoint(t, w.text)
	return rows
}

// TestSymbolFilesOfMacOSAreAsDumpSyms compares the program in testdata with what dump_syms in Rust wrote of it: the names,
// lines and inlined calls of each address, and the rows at calls.
func TestSymbolFilesOfMacOSAreAsDumpSyms(t *testing.T) {
	for _, machine := range macosMachines {
		w := writeMacOS(t, filepath.Join(macos, "app:"+machine), macosPlugins(t))
		data, err := os.ReadFile(filepath.Join(macos, "app-"+machine+".sym"))
		if err != nil {
			t.Fatal(err)
		}
		sym, err := breakpad.Read("app-"+machine+".sym", data)
		if err != nil {
			t.Fatal(err)
		}
		theirs := &written{file: w.file, base: w.base, sym: sym}
		f, text := w.file.Object.MachO(), w.file.Object.Section(".text")
		calls := 0
		for at := text.Address; at < text.Address+text.Size; {
			next := at + instructionSize(f, at, text.Address+text.Size)
			want, _ := theirs.sym.Frames(nil, at-w.base)
			got, _ := w.sym.Frames(nil, at-w.base)
			if d := frameDifference(want, got); d != "" {
				t.Errorf("%s: %#x: %s: %s, expected %s", machine, at, d, frameText(got), frameText(want))
			}
			if isCall(t, f, at) {
				calls++
				want, got := theirs.row(t, next-1), w.row(t, next-1)
				if got == nil || want == nil || want.CFA.Register != got.CFA.Register || want.CFA.Offset != got.CFA.Offset || !isSaved(got) || !savesAll(want, got) {
					t.Errorf("%s: %#x: %+v, expected %+v", machine, at, got, want)
				}
			}
			at = next
		}
		if calls < 3 {
			t.Errorf("%s: %d calls, expected more", machine, calls)
		}
	}
}

// isCall reports whether an instruction is a call.
func isCall(t *testing.T, f *macho.File, address uint64) bool {
	t.Helper()
	code, err := f.Bytes(address, 4)
	if err != nil {
		t.Fatal(err)
	}
	word := binary.LittleEndian.Uint32(code)
	if f.MachineName() == "arm64" {
		return word>>26 == 0x25 || word&0xfffffc1f == 0xd63f0000 // bl, blr
	}
	return code[0] == 0xe8 || code[0] == 0xff && code[1]>>3&7 == 2 // call
}

// alone copies a program to where its dSYM is not.
func alone(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func compareWithWalks(t *testing.T, path string, total map[string]int) {
	t.Helper()
	plugins := macosPlugins(t)
	w := writeMacOS(t, path, plugins)
	o := w.file.Object
	loaded := &target.Module{Module: trace.Module{Path: path, Arch: o.ELFMachine().String(), File: path, BuildID: o.BuildID()}, Object: o}
	if a, err := plugins.ForMachine(o.ELFMachine()); err != nil {
		t.Fatal(err)
	} else {
		loaded.Arch = a.Name()
	}
	for _, s := range o.Segments() {
		loaded.Segments = append(loaded.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	library := code.NewLibrary(plugins, 0)
	defer library.Close()
	module := library.Load(loaded, code.Loading{Finder: new(object.Finder)})
	defer module.Close()
	f := o.MachO()
	starts, err := f.FunctionStarts()
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.UnwindInfo()
	if err != nil {
		t.Fatal(err)
	}
	for _, start := range starts {
		_, end, _ := f.FunctionAt(start)
		for at := start; at < end; at += instructionSize(f, at, end) {
			want, err := module.Row(t.Context(), at, true)
			got := w.row(t, at)
			switch {
			case err != nil && got == nil:
				total["no row"]++
			case err == nil && got == nil && want.By == trace.ByRules && !want.IsComplete && !hasEncoding(info, at):
				total["read ahead of the address alone, of code without unwind information"]++
			case err != nil || got == nil:
				t.Fatalf("%s: %#x: %+v, expected %+v, %v", path, at, got, want, err)
			case rowDifference(want.Rules, got) == "":
				total[string(want.By)]++
			case want.Rules.CFA.Register == got.CFA.Register && want.Rules.CFA.Offset == got.CFA.Offset && savesAll(got, want.Rules):
				total["saved registers that did not change yet, of an FDE"]++
			case isBody(info, at, got) && (savesAll(want.Rules, got) || f.MachineName() == "arm64" && isSaved(want.Rules) && savesAll(got, want.Rules)):
				// A walk has the frame by the stack pointer: of arm64, and where the start of the function does not lead
				// to the code, as to a landing pad, so that it is read ahead of the address.
				total["the body's row, which has the frame by the frame pointer"]++
			default:
				t.Fatalf("%s: %#x: by %s: %s: %s, expected %s", path, at, want.By, rowDifference(want.Rules, got), macRowText(got), macRowText(want.Rules))
			}
		}
	}
	checkDisjoint(t, w.text)
}

// TestSymbolFilesOfDSYMsAlone: how functions are unwound is in the program, which is said.
func TestSymbolFilesOfDSYMsAlone(t *testing.T) {
	dir := macosFolder(t, dsymFile)
	for _, machine := range macosMachines {
		w := writeMacOS(t, filepath.Join(dir, dsymFile+":"+machine), nil)
		if w.CFI > 0 || !w.HasDebugInfo || len(w.Problems) != 1 || !strings.Contains(w.Problems[0], "give the program") {
			t.Errorf("%+v, expected a problem", w.WrittenSymbols)
		}
	}
}

// instructionSize returns the size of an instruction.
func instructionSize(f *macho.File, address, end uint64) uint64 {
	if f.MachineName() == "arm64" {
		return 4
	}
	code, err := f.Bytes(address, end-address)
	if err != nil {
		return end - address
	}
	i, err := x86asm.Decode(code, 64)
	if err != nil {
		return 1
	}
	return uint64(i.Len) //nolint:gosec // at least 1
}

// isBody reports whether a row is that of the compact unwind encoding.
func isBody(info *macho.UnwindInfo, address uint64, row *cfi.Row) bool {
	var body cfi.Row
	e, ok, err := info.At(address)
	return ok && err == nil && info.Row(&e, &body) == nil && rowDifference(&body, row) == ""
}

// isSaved reports whether the return address is in memory.
func isSaved(row *cfi.Row) bool {
	rule, _ := row.Rule(row.ReturnAddress)
	return rule.Kind == cfi.Offset
}

// hasEncoding reports whether there is an entry whose encoding has a row.
func hasEncoding(info *macho.UnwindInfo, address uint64) bool {
	e, ok, err := info.At(address)
	return ok && err == nil && info.Mode(e.Encoding) != macho.NoUnwind && info.Mode(e.Encoding) != macho.DWARFMode
}

// savesAll reports whether all registers that are saved in a body are, by another row, saved at the same places.
func savesAll(row, body *cfi.Row) bool {
	return !slices.ContainsFunc(body.Rules, func(r cfi.RegisterRule) bool {
		rule, _ := row.Rule(r.Column)
		return r.Rule.Kind == cfi.Offset && (rule.Kind != cfi.Offset || rule.Offset != r.Rule.Offset)
	})
}

// macRowText is a row on a line.
func macRowText(r *cfi.Row) string {
	s := fmt.Sprintf("%#x to %#x: CFA=%d%+d", r.Start, r.End, r.CFA.Register, r.CFA.Offset)
	for _, rule := range r.Rules {
		s += fmt.Sprintf(" %d:%v%+d", rule.Column, rule.Rule.Kind, rule.Rule.Offset)
	}
	return s
}
