// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// windowsProgram is a program by MinGW, with unwind codes and DWARF.
func windowsProgram(t *testing.T) string {
	t.Helper()
	const mingw = "x86_64-w64-mingw32-gcc"
	source, err := filepath.Abs("../testdata/windows/crash.c")
	if err != nil {
		t.Fatal(err)
	}
	b := oracle.Build{Sources: []string{source}, Commands: [][]string{{mingw, "-g", "-O2", "-o", "crash.exe", source, "-ldbghelp"}}}
	return filepath.Join(b.Make(t), "crash.exe")
}

// The rows of unwind codes, and the rows of DWARF behind them, have the same CFA where both
// tell of a PC. GCC's DWARF does not follow the stack pointer where a function with a frame
// pointer ends: the tests of package pe sort that out.
func TestRowsOfAPEFile(t *testing.T) {
	doc := rowsJSON(t, windowsProgram(t))
	codes := map[string]string{} // CFA by PC
	for _, f := range doc.FDEs {
		for _, r := range f.Rows {
			if f.Section == ".xdata" {
				codes[r.PC] = r.CFA
			}
		}
	}
	same := 0
	for _, f := range doc.FDEs {
		hasFramePointer := false
		for _, r := range f.Rows {
			hasFramePointer = hasFramePointer || strings.HasPrefix(r.CFA, "rbp")
			switch cfa, ok := codes[r.PC]; {
			case f.Section != ".debug_frame" || !ok || hasFramePointer:
			case cfa == r.CFA:
				same++
			default:
				t.Errorf("%s: CFA is %s by unwind codes, %s by DWARF", r.PC, cfa, r.CFA)
			}
		}
	}
	if same < 500 || len(doc.Problems) > 0 {
		t.Errorf("%d rows at the same PCs, problems %q", same, doc.Problems)
	}
}

func TestUnwindCodesOfAPEFile(t *testing.T) {
	c := callFrames(t, windowsProgram(t))
	c.Problem = func(err error) { t.Error(err) }
	var out strings.Builder
	if err := c.WriteCFIText(&out); err != nil {
		t.Fatal(err)
	}
	// Of the function dynamic, which allocates what it is told to, and of mainCRTStartup,
	// which catches exceptions.
	for _, want := range []string{"UWOP_SET_FPREG       rbp, ", "UWOP_PUSH_NONVOL     rbx", "UWOP_SAVE_XMM128     xmm6, ", "UNW_FLAG_EHANDLER, handler 0x1400"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}
