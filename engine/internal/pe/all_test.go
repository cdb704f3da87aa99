// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// libraries are the PE files of Wine's package, which MinGW built: some of them, and all
// for the long proof.
func libraries(t testing.TB) []string {
	t.Helper()
	list, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/*.*")
	if len(list) == 0 {
		oracle.Missing(t, "no PE files of Wine (package libwine)")
	}
	var some []string
	for i, path := range list {
		if !proof.IsRequested() && i%40 != 0 && filepath.Base(path) != "ntdll.dll" { // which has a machine frame
			continue
		}
		if data, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		} else if IsPE(data) { // some are of 16 bits, or type libraries
			some = append(some, path)
		}
	}
	return some
}

// open opens a PE file.
func open(t testing.TB, path string) *File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEveryFunctionHasRows lists the rows of every function of many files, and wants them
// to follow each other without a gap.
func TestEveryFunctionHasRows(t *testing.T) {
	var parts [4]int
	files, functions, code := 0, 0, uint64(0)
	began := time.Now()
	for _, path := range libraries(t) {
		f := open(t, path)
		files++
		err := f.Functions(func(fn Function) bool {
			functions++
			code += fn.End - fn.Start
			at := fn.Start
			if err := f.Rows(fn, func(r *Row) bool {
				if r.Start != at || r.End <= at {
					t.Errorf("%s: row %#x to %#x, expected it to begin at %#x", path, r.Start, r.End, at)
				}
				at = r.End
				parts[r.Part]++
				return true
			}); err != nil || at != fn.End {
				t.Errorf("%s: function %#x to %#x: rows end at %#x: %v", path, fn.Start, fn.End, at, err)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
		for _, p := range f.Problems() {
			t.Error(p)
		}
	}
	t.Logf("%d files, %d functions, %d bytes of code, rows: %d body, %d prologue, %d epilogue; %v",
		files, functions, code, parts[Body], parts[Prologue], parts[Epilogue], time.Since(began))
}
