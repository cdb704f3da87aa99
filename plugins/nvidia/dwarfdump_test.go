// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

var (
	dumpedFDE = regexp.MustCompile(`^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ FDE cie=\S+ pc=([0-9a-f]+)\.\.\.([0-9a-f]+)`)
	dumpedCIE = regexp.MustCompile(`^[0-9a-f]{8,} [0-9a-f]+ [0-9a-f]+ CIE`)
	dumpedRow = regexp.MustCompile(`^  0x([0-9a-f]+): CFA=reg(\d+)([+-]\d+)?`)
)

// TestRowsAgainstDwarfdump holds the CFA of every row that llvm-dwarfdump prints against ours:
// in the tests' cubins, and in the folder that NVIDIA_CUBINS names.
func TestRowsAgainstDwarfdump(t *testing.T) {
	oracle.All(t)
	tool := oracle.Tool(t, "llvm-dwarfdump")
	files, err := filepath.Glob("testdata/*.cubin")
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("NVIDIA_CUBINS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.cubin"))
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %d cubins, %v", dir, len(more), err)
		}
		files = append(files, more...)
	}
	compared, mended := 0, 0
	for _, file := range files {
		n, m := compareWithDwarfdump(t, tool, file)
		compared, mended = compared+n, mended+m
	}
	t.Logf("%d rows of %d cubins, %d that the code corrects", compared, len(files), mended)
	if compared < 100 {
		t.Errorf("only %d rows were compared", compared)
	}
}

// compareWithDwarfdump returns how many rows were compared, and how many of them have another
// CFA because the code says so.
func compareWithDwarfdump(t *testing.T, tool, file string) (compared, mended int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	o := &codeObject{ctx: context.Background(), engine: c, req: c.request(), answer: &sdk.OpenObjectAnswer{}}
	o.describe()
	places := o.references()
	// FDEs that nvlink leads to no CIE end its output.
	output, _ := exec.Command(tool, "--debug-frame", file).Output() //nolint:gosec // of the test
	text := string(output)
	var place reference
	var start, end uint64
	isIn := false
	for _, line := range regexp.MustCompile(`\r?\n`).Split(text, -1) {
		if m := dumpedFDE.FindStringSubmatch(line); m != nil {
			offset, _ := strconv.ParseUint(m[1], 16, 64)
			start, _ = strconv.ParseUint(m[2], 16, 64)
			end, _ = strconv.ParseUint(m[3], 16, 64)
			place, isIn = places[offset+20] // behind the length and CIE_pointer of the 64-bit format
			if !place.hasAddend {
				place.value = start
			}
			continue
		}
		if dumpedCIE.MatchString(line) {
			isIn = false
		}
		m := dumpedRow.FindStringSubmatch(line)
		if m == nil || !isIn {
			continue
		}
		at, _ := strconv.ParseUint(m[1], 16, 64)
		if at >= end {
			continue // compilers write advances that lead back, and llvm-dwarfdump counts on
		}
		at += place.value - start
		want := fmt.Sprintf("%s%s", m[2], m[3])
		row := rowOf(o.answer, place.section, at)
		if row == nil {
			if f := o.functionAt(place.section, place.value); f != nil && !f.isKernel() {
				continue // before sm_70
			}
			t.Errorf("%s: no row at %#x of section %d", file, at, place.section)
			continue
		}
		got := fmt.Sprint(row.CFA.Register)
		if row.CFA.Offset != 0 {
			got += fmt.Sprintf("%+d", row.CFA.Offset)
		}
		compared++
		if got != want && row.CFA.Offset == 0 && row.Start == at {
			mended++
		} else if got != want {
			t.Errorf("%s: %#x of section %d: CFA %s, llvm-dwarfdump %s", file, at, place.section, got, want)
		}
	}
	return compared, mended
}

// rowOf returns the row at an address of a section; nil without one.
func rowOf(a *sdk.OpenObjectAnswer, section uint32, pc uint64) *cfi.Row {
	for i := range a.Tables {
		for j := range a.Tables[i].Rows {
			if r := &a.Tables[i].Rows[j]; a.Tables[i].Section == section && r.Start <= pc && pc < r.End {
				return r
			}
		}
	}
	return nil
}
