// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
)

// FuzzFiles reads everything of a file that names and debug information need.
func FuzzFiles(f *testing.F) {
	const dir = "../../symbolize/testdata/macos"
	for _, name := range []string{"main-arm64.o", "main-x86_64.o", "app", "app.dSYM/Contents/Resources/DWARF/app"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		if list, err := Slices(data); err == nil {
			for _, s := range list {
				f.Add(data[s.Offset : s.Offset+s.Size])
			}
		}
	}
	plain, err := os.ReadFile("testdata/unwind-arm64")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(machotest.Encrypted(f, plain, 0x4b0, 0x100, 1))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Slices(data)
		file, err := New("fuzz", data)
		if err != nil {
			return
		}
		_, _ = file.DebugMap()
		for _, s := range file.Sections() {
			_, _ = file.Relocated(s)
			_, _ = file.Bytes(s.Address, s.Size)
		}
		PutPlain(bytes.Clone(data))
		_ = file.Exports(func(Export) {})
		_, _ = file.FunctionStarts()
		_, _ = file.Entry()
	})
}

// TestRelocatedFieldsOfSymbols relocates fields of all kinds, by hand.
func TestRelocatedFieldsOfSymbols(t *testing.T) {
	const symbols, relocs, content = 0x100, 0x140, 0x180
	data := make([]byte, 0x200)
	put := func(at int, b ...byte) { copy(data[at:], b) }
	put(symbols+4, typeSection, 1)
	put(symbols+8, 0x00, 0x10) // symbol 0: 0x1000
	put(symbols+16+4, typeSection, 1)
	put(symbols+16+8, 0x00, 0x04) // symbol 1: 0x400
	entry := func(i int, place, symbol, length, external, kind uint32) {
		info := symbol | length<<25 | external<<27 | kind<<28
		put(relocs+8*i, byte(place), 0, 0, 0, byte(info), byte(info>>8), byte(info>>16), byte(info>>24))
	}
	entry(0, 0, 0, 3, 1, relocUnsigned)
	entry(1, 8, 1, 2, 1, relocSubtractARM64)
	entry(2, 8, 0, 2, 1, relocUnsigned)
	entry(3, 12, 0, 2, 0, relocUnsigned) // of a section: the field has the address
	put(content, 5)
	put(content+8, 0x02)
	put(content+12, 0x34, 0x12)
	f := &File{name: "made", data: data, header: header{machine: MachineARM64, typ: TypeObject}, symtab: place{offset: symbols}, symbolCount: 2}
	s := &Section{Segment: "__DWARF", Name: "__debug_info", Offset: content, Size: 16, Relocations: relocs, Count: 4}
	got, err := f.Relocated(s)
	want := []byte{0x05, 0x10, 0, 0, 0, 0, 0, 0, 0x02, 0x0c, 0, 0, 0x34, 0x12, 0, 0}
	if err != nil || string(got) != string(want) {
		t.Errorf("% x, %v, expected % x", got, err, want)
	}
	for i, bad := range [][5]uint32{{14, 0, 2, 1, 0}, {0, 2, 3, 1, 0}, {0, 0, 3, 1, 3}, {0, 0, 1, 1, 0}} {
		entry(0, bad[0], bad[1], bad[2], bad[3], bad[4])
		if got, err := f.Relocated(s); err == nil {
			t.Errorf("%d: % x, expected an error", i, got)
		}
	}
	s.Count = 1 << 20
	if _, err := f.Relocated(s); err == nil {
		t.Error("relocations behind the end of the file are no error")
	}
}
