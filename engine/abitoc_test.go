// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestTOCPointersOfCallersAreTheirModules stops a program of POWER in a function that the C
// library called, and holds r2 of every frame against the TOC of the frame's module, and against
// gdb's r2 in the program's frames: gdb 13 has the innermost r2 in all frames, which is wrong in
// frames of the library.
func TestTOCPointersOfCallersAreTheirModules(t *testing.T) {
	t.Parallel()
	long(t)
	for _, m := range crossMachines[:2] {
		t.Run(m.machine, func(t *testing.T) {
			t.Parallel()
			oracle.Tools(t, m.triple+"-gcc", "qemu-"+m.machine, "gdb-multiarch")
			dir := t.TempDir()
			exe, values := filepath.Join(dir, "subject"), filepath.Join(dir, "values.json")
			oracle.Run(t, m.triple+"-gcc", "-w", "-O2", "-g", "-no-pie", "-o", exe, subject.Source(t, "abi.c"))
			after := []string{"-ex", fmt.Sprintf("python values_path=%q; register_name='r2'", values), "-ex", "source " + subject.Source(t, "gdb_register.py")}
			path, _ := m.qemuSnapshot(t, nil, after, exe, "sorted")
			theirs := gdbRegisters(t, values)
			stack := m.stack(t, path)
			known, same := 0, 0
			modules := map[string]int{}
			for i := range stack.Frames {
				f := &stack.Frames[i]
				got, ok := register(f, 2)
				want := tocOf(t, f)
				t.Logf("frame %d in %s: r2 %#x %v, of its module %#x, gdb has %#x", i, filepath.Base(f.Module.Path), got, ok, want, theirs[f.PC])
				if !ok {
					continue
				}
				known++
				modules[f.Module.Path]++
				if got != want {
					t.Errorf("frame %d, %#x: r2 is %#x, the TOC of %s %#x", i, f.PC, got, f.Module.Path, want)
				}
				if f.Module.File == exe && got == theirs[f.PC] {
					same++
				}
			}
			if known < 4 || len(modules) < 2 || same < 2 {
				t.Errorf("%d of %d frames have r2, of %d modules, %d of the program as gdb has it", known, len(stack.Frames), len(modules), same)
			}
		})
	}
}

// gdbRegisters are the registers of gdb's frames by PC, of the innermost one of each.
func gdbRegisters(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ PC, Value *uint64 }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	values := map[uint64]uint64{}
	for _, f := range list {
		if f.PC != nil && f.Value != nil {
			values[*f.PC] = *f.Value
		}
	}
	return values
}

// tocOf is the TOC pointer of the module of a frame: 0x8000 above the start of its .got (Power
// Architecture 64-Bit ELF V2 ABI, 3.3).
func tocOf(t *testing.T, f *trace.Frame) uint64 {
	t.Helper()
	o, err := object.Open(f.Module.File)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	got := o.Section(".got")
	if got == nil {
		t.Fatalf("%s has no .got", f.Module.Path)
	}
	return got.Address + 0x8000 + f.PC - f.ModuleOffset
}
