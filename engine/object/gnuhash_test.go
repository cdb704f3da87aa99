// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestMayExportEqualsTheSymbols asks libraries' hash tables for each symbol that they
// have, and for names that nobody has: of those nearly all are told apart.
func TestMayExportEqualsTheSymbols(t *testing.T) {
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		f, err := elf.Open(path)
		if err != nil {
			oracle.Missing(t, "%v", err)
			continue
		}
		defer f.Close()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		o, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if o.Section(hashTable) == nil {
			oracle.Missing(t, "%s has no %s", path, hashTable)
			continue
		}
		defined, wrong := 0, 0
		for _, s := range symbols {
			if s.Section != elf.SHN_UNDEF {
				if defined++; !o.MayExport(s.Name) {
					t.Errorf("%s: %s is said not to be there", path, s.Name)
				}
			}
		}
		for i := range 10000 {
			if o.MayExport(fmt.Sprintf("nobody%d", i)) {
				wrong++
			}
		}
		t.Logf("%s: %d symbols, %d of 10000 names that are not there are not told", path, defined, wrong)
		if defined < 1000 || wrong > 10 {
			t.Errorf("%s: %d symbols, %d names: expected 1000, and 10 at most", path, defined, wrong)
		}
	}
}

func FuzzMayExport(f *testing.F) {
	f.Add(append([]byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0}, bytes.Repeat([]byte{255, 0, 0, 1}, 6)...), "a", true)
	f.Fuzz(func(t *testing.T, data []byte, name string, is64 bool) {
		size := uint64(4)
		if is64 {
			size = 8
		}
		mayHave(data, binary.LittleEndian, size, name)
		mayHave(data, binary.BigEndian, size, name)
	})
}
