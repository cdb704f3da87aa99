// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestImportSlots holds the table against objdump's: the slots of imports are in it, and
// what lies before and behind it is not.
func TestImportSlots(t *testing.T) {
	oracle.Tools(t, mingwC, "x86_64-w64-mingw32-objdump")
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "p.c"), filepath.Join(dir, "p.exe")
	if err := os.WriteFile(source, []byte("#include <stdlib.h>\nint main(void) { return abs(atoi(\"1\")); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, mingwC, "-o", exe, source)
	said := oracle.Run(t, "x86_64-w64-mingw32-objdump", "-p", exe)
	m := regexp.MustCompile(`(?m)^Entry c ([0-9a-f]+) ([0-9a-f]+) `).FindStringSubmatch(said)
	base := regexp.MustCompile(`(?m)^ImageBase\s+([0-9a-f]+)`).FindStringSubmatch(said)
	if m == nil || base == nil {
		t.Fatalf("no table of imports in %s", said)
	}
	hex := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	start, size := hex(base[1])+hex(m[1]), hex(m[2])
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(exe, data)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[uint64]bool{start: true, start + size - 8: true, start - 8: false, start + size: false, f.Entry(): false} {
		if f.IsImportSlot(address) != want || size == 0 {
			t.Errorf("%#x: %v, the table has %#x bytes at %#x", address, !want, size, start)
		}
	}
}
