// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestEpiloguesAreThoseOfVersion2 has a program whose unwind information names its epilogues,
// as clang writes it: they must be those that are found by reading the code.
func TestEpiloguesAreThoseOfVersion2(t *testing.T) {
	source, err := filepath.Abs("testdata/version2.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"clang-22", "--target=x86_64-w64-mingw32", "-O2", "-fwinx64-eh-unwindv2=required", "-c", "-o", "version2.o", source},
		{mingwC, "-o", "version2.exe", "version2.o"},
	}}.Make(t)
	f := open(t, filepath.Join(dir, "version2.exe"))
	named := 0
	if err := f.Functions(func(fn Function) bool {
		u, err := f.UnwindInfo(fn)
		if err != nil {
			t.Fatal(err)
		}
		if u.Version != 2 {
			return true
		}
		slices.SortFunc(u.Epilogs, func(a, b Epilog) int { return cmp.Compare(a.Start, b.Start) })
		var read []Epilog
		if err := f.Rows(fn, func(r *Row) bool {
			switch n := len(read) - 1; {
			case r.Part != Epilogue:
			case n >= 0 && read[n].End == r.Start:
				read[n].End = r.End
			default:
				read = append(read, Epilog{r.Start, r.End})
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		// What the file names begins behind the instruction that frees, as the rows do; of
		// the last instruction it may have the first byte only.
		if len(read) != len(u.Epilogs) {
			t.Errorf("%#x: %x by the code, %x by the file", fn.Start, read, u.Epilogs)
			return true
		}
		for i := range read {
			named++
			if read[i].Start != u.Epilogs[i].Start {
				t.Errorf("%#x: epilogue %x by the code, %x by the file", fn.Start, read[i], u.Epilogs[i])
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if named < 4 {
		t.Errorf("%d epilogues compared, expected at least 4", named)
	}
}
