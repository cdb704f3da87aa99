// SPDX-License-Identifier: Apache-2.0

package macho_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/internal/oracle"
)

const objdump = "llvm-objdump-22"

// objdumpEntry is an entry of a page in objdump's list.
var objdumpEntry = regexp.MustCompile(`^\s+\[\d+\]: function offset=0x([0-9a-f]+), encoding(?:\[\d+\])?=0x([0-9a-f]+)`)

// checkEntries compares all entries with objdump's, and looks each up at its first and last address.
func checkEntries(t *testing.T, path string) (entries int) {
	t.Helper()
	f := machO(t, path)
	u, err := f.UnwindInfo()
	if err != nil || u == nil {
		t.Fatalf("%s: %v, %v", path, u, err)
	}
	var got, want []string
	for e, err := range u.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%08x %08x", e.Start-f.Text().Address, uint32(e.Encoding)))
		for _, address := range []uint64{e.Start, e.Start + (e.End-e.Start)/2, e.End - 1} {
			if found, ok, err := u.At(address); err != nil || !ok && e.Start < e.End || ok && found != e {
				t.Errorf("%s: %#x: %+v, %v, %v, expected %+v", path, address, found, ok, err, e)
			}
		}
	}
	for line := range strings.Lines(oracle.Run(t, objdump, "--unwind-info", path)) {
		if m := objdumpEntry.FindStringSubmatch(line); m != nil {
			want = append(want, m[1]+" "+m[2])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d entries, objdump has %d: %v, %v", path, len(got), len(want), got, want)
	}
	return len(got)
}

// TestEntriesAreThoseOfObjdump compares compact unwind information with LLVM's list.
func TestEntriesAreThoseOfObjdump(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, objdump)
	list, entries := machotest.Programs(t, "testdata"), 0
	for i := range list {
		entries += checkEntries(t, list[i].Path)
	}
	t.Logf("%d entries of %d programs", entries, len(list))
}

// Looking an encoding up, and making its row, take no memory.
func TestLookingUpAnEncodingDoesNotAllocate(t *testing.T) {
	f := machO(t, "testdata/unwind-x86_64")
	u, err := f.UnwindInfo()
	if err != nil || u == nil {
		t.Fatalf("%v, %v", u, err)
	}
	var first macho.UnwindEntry
	for e := range u.Entries() {
		first = e
		break
	}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = u.At(first.Start) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
