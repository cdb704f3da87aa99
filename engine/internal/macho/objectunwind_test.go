// SPDX-License-Identifier: Apache-2.0

package macho_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// objectEntry is an entry of an object file in objdump's list.
var objectEntry = regexp.MustCompile(`start:\s+0x([0-9a-f]+).*\n\s+length:\s+0x([0-9a-f]+)\n\s+compact encoding:\s+0x([0-9a-f]+)`)

// functions are the places of the functions of a file, by name.
func functions(t *testing.T, f *macho.File) map[string]uint64 {
	t.Helper()
	list := map[string]uint64{}
	err := f.Symbols(func(s *macho.Symbol) {
		if section := f.SectionAt(s.Value); s.IsDefined() && section != nil && section.IsCode() {
			list[s.Name] = s.Value
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rowAt is the row of the function at an address.
func rowAt(t *testing.T, u *macho.UnwindInfo, address uint64) string {
	t.Helper()
	e, ok, err := u.At(address)
	if err != nil {
		t.Fatal(err)
	}
	if mode := u.Mode(e.Encoding); !ok || mode == macho.NoUnwind || mode == macho.DWARFMode {
		return fmt.Sprint(ok, mode)
	}
	var row cfi.Row
	if err := u.Row(&e, &row); err != nil {
		t.Error(err)
	}
	return text(&row)
}

// TestObjectFilesHaveTheUnwindInformationOfPrograms compares the compact unwind information of object files with LLVM's
// list, and with what the linker made of it.
func TestObjectFilesHaveTheUnwindInformationOfPrograms(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, objdump)
	entries, same := 0, 0
	for _, p := range machotest.Programs(t, "testdata") {
		object, program := machO(t, p.Path+".o"), machO(t, p.Path)
		u, err := object.UnwindInfo()
		if err != nil || u == nil || !u.IsObject() {
			t.Fatalf("%s.o: %v, %v", p.Path, u, err)
		}
		linked, err := program.UnwindInfo()
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for e, err := range u.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%x %x %08x", e.Start, e.End-e.Start, uint32(e.Encoding)))
		}
		for _, m := range objectEntry.FindAllStringSubmatch(oracle.Run(t, objdump, "--unwind-info", p.Path+".o"), -1) {
			want = append(want, m[1]+" "+m[2]+" "+m[3])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s.o: %d entries, objdump has %d: %v, %v", p.Path, len(got), len(want), got, want)
		}
		entries += len(got)
		places := functions(t, program)
		for name, address := range functions(t, object) {
			place, isThere := places[name]
			if _, ok, _ := u.At(address); !isThere || !ok {
				continue
			}
			if x, y := rowAt(t, u, address), rowAt(t, linked, place); x != y {
				t.Errorf("%s: %s: %s, in the program %s", p.Path, name, x, y)
			}
			same++
		}
	}
	t.Logf("%d entries, %d functions as in the program", entries, same)
	if entries < 1000 || same < 1000 {
		t.Error("too few")
	}
}
