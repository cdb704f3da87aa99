// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestSymbolFilesHaveTheRowsOfWalks wants, at each address of a program's functions, the row by which unwindd walks from there
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
	for _, p := range machotest.Programs(t, "../internal/macho/testdata") {
		compareWithWalks(t, alone(t, p.Path), total)
	}
	t.Log(total)
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
	for _, start := range starts {
		_, end, _ := f.FunctionAt(start)
		for at := start; at < end; at++ {
			want, err := module.Row(t.Context(), at, true)
			got := w.row(t, at)
			switch {
			case err != nil && got == nil:
				total["no row"]++
			case err != nil || got == nil:
				t.Errorf("%s: %#x: %+v, expected %+v, %v", path, at, got, want, err)
			case rowDifference(want.Rules, got) != "":
				t.Errorf("%s: %#x: by %s: %s: %+v, expected %+v", path, at, want.By, rowDifference(want.Rules, got), got, want.Rules)
			default:
				total[string(want.By)]++
			}
			if t.Failed() && total["shown"] > 5 {
				t.FailNow()
			} else if t.Failed() {
				total["shown"]++
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
