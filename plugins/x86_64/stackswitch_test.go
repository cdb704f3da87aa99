// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"debug/elf"
	"debug/gosym"
	"os"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

// ownCode is the code of a function of the test's own executable, as it is to be read.
func ownCode(t *testing.T, name string) *sdk.CodeRange {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := f.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, text.Addr))
	if err != nil {
		t.Fatal(err)
	}
	fn := table.LookupFunc(name)
	if fn == nil {
		t.Fatalf("%s has no %s", path, name)
	}
	code := make([]byte, fn.End-fn.Entry)
	if _, err := text.ReadAt(code, int64(fn.Entry-text.Addr)); err != nil {
		t.Fatal(err)
	}
	return &sdk.CodeRange{Name: name, Start: fn.Entry, Code: code, Bounded: true, Exact: true}
}

// TestRowsOfStackSwitches looks at every instruction of the functions of Go's runtime
// that call on another stack: before the stack pointer is loaded for the first time
// they have rows like others, then rows that lead to the first stack by memory, and
// where it is loaded for the second time, rows that find the frame by it again.
func TestRowsOfStackSwitches(t *testing.T) {
	for _, name := range []string{"runtime.systemstack", "runtime.asmcgocall", "runtime.mcall"} {
		r := ownCode(t, name)
		loads, switched := 0, 0
		for at := 0; at < len(r.Code); {
			e, ok := mode.ReadEffect(r.Code[at:])
			if !ok || e.Kind == x86code.Return {
				break
			}
			r.PC = r.Start + uint64(at)
			row, ok := switchRow(r, at)
			bySP := row.CFA.Kind == cfi.CFARegister && row.CFA.Register == uint64(rsp)
			switch {
			case loads == 0 && ok, loads == 1 && (!ok || row.CFA.Kind != cfi.CFAExpression), loads == 2 && ok && !bySP:
				t.Errorf("%s+%#x, the stack pointer was loaded %d times: %v %+v", name, at, loads, ok, row.CFA)
			}
			if loads == 1 {
				switched++
			}
			if (e.Kind == x86code.Load || e.Kind == x86code.Move) && e.Dst == x86code.SP {
				loads++
			}
			if e.Kind == x86code.Call && loads == 1 && name == "runtime.mcall" {
				break // it does not return
			}
			at += int(e.Length)
		}
		if switched < 4 {
			t.Errorf("%s: %d instructions on the other stack", name, switched)
		}
	}
}
