// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestInstructionsAreThoseOfObjdump reads the code of functions as rows are made of it, and
// wants instructions to begin where objdump has them begin, for each instruction of a few
// libraries and of programs with and without AVX.
func TestInstructionsAreThoseOfObjdump(t *testing.T) {
	oracle.Tools(t, mingwObjdump, mingwC, mingwCXX)
	files := programs(t)
	for _, path := range libraries(t) {
		if len(files) < 24 || filepath.Base(path) == "ntdll.dll" {
			files = append(files, path)
		}
	}
	total, differ := 0, 0
	for _, path := range files {
		f := open(t, path)
		if f.Section(".text") == nil {
			continue
		}
		starts := make(map[uint64]bool)
		for _, i := range instructions(t, path) {
			starts[i.address] = true
		}
		if err := f.Functions(func(fn Function) bool {
			code := f.source.upTo(fn.entry.begin, fn.End-fn.Start)
			for at := 0; at < len(code); {
				if s := f.SectionAt(fn.Start); s == nil || s.Name != ".text" {
					break
				}
				total++
				inst, ok := instruction(code[at:])
				if !ok || !starts[fn.Start+uint64(at)] {
					if differ++; differ < 10 {
						t.Errorf("%s: %#x: % x: expected no instruction to begin here, or one that is known", path, fn.Start+uint64(at), prefix(code, uint64(at), 16))
					}
					break
				}
				at += inst.Len
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d instructions, %d functions where one differs", len(files), total, differ)
}
