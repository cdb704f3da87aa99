// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// TestStandInsAreTheSectionsThatProgramHeadersLeadTo takes the section headers out of
// real files: the tables of dynamic linking are found where these say they are, and
// code and data lie in sections of their rights, none over another.
func TestStandInsAreTheSectionsThatProgramHeadersLeadTo(t *testing.T) {
	files, err := filepath.Glob("../../plugins/amdgpu/testdata/*.co")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "/bin/ls", "/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := New(file, bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(data[40:], 0) // e_shoff
		clear(data[58:64])                          // e_shentsize, e_shnum, e_shstrndx
		bare, err := New(file, data)
		if err != nil {
			t.Fatal(err)
		}
		if len(bare.Sections()) > 0 || len(bare.SyntheticSections()) < 4 || len(whole.SyntheticSections()) != len(whole.Sections()) {
			t.Errorf("%s: %d sections, %d in their place; with headers %d", file, len(bare.Sections()), len(bare.SyntheticSections()), len(whole.SyntheticSections()))
		}
		for _, name := range []string{".dynsym", ".dynstr", ".dynamic"} {
			want, got := whole.Section(name), bare.SyntheticSection(name)
			if want == nil {
				continue
			}
			if got == nil || got.Address != want.Address || got.Size != want.Size || got.Offset != want.Offset || got.Type != want.Type {
				t.Errorf("%s: %s is %+v, expected that at %#x, size %#x", file, name, got, want.Address, want.Size)
			}
		}
		checkStandIns(t, file, whole, bare)
	}
}

func checkStandIns(t *testing.T, file string, whole, bare *Object) {
	t.Helper()
	list := bare.SyntheticSections()[1:]
	for i, s := range list {
		for _, other := range list[:i] {
			if s.Address < other.Address+other.Size && other.Address < s.Address+s.Size {
				t.Errorf("%s: %s at %#x lies over %s at %#x", file, s.Name, s.Address, other.Name, other.Address)
			}
		}
		if data, err := s.Data(); err != nil || uint64(len(data)) != s.Size {
			t.Errorf("%s: %s: %d bytes, %v", file, s.Name, len(data), err)
		}
	}
	text := whole.Section(".text")
	if text == nil {
		return
	}
	for _, s := range list {
		if s.Flags&elf.SHF_EXECINSTR != 0 && text.Address >= s.Address && text.Address+text.Size <= s.Address+s.Size {
			return
		}
	}
	t.Errorf("%s: no section has the code at %#x", file, text.Address)
}

// TestStandInsOfDamagedSegments has a segment with bytes in the file and none in memory, and two
// that lie over one another.
func TestStandInsOfDamagedSegments(t *testing.T) {
	const segments, size = 3, 56
	data := make([]byte, 0x3000)
	copy(data, "\x7fELF\x02\x01\x01")
	for _, field := range []struct{ at, value uint16 }{{16, 3}, {18, 62}, {20, 1}, {32, 64}, {52, 64}, {54, size}, {56, segments}} {
		binary.LittleEndian.PutUint16(data[field.at:], field.value)
	}
	for i, s := range [segments]struct{ address, size, memory uint64 }{{0x1000, 0x500, 0}, {0x2000, 0x100, 0x800}, {0x2008, 0x10, 0x800}} {
		p := data[64+i*size:]
		binary.LittleEndian.PutUint32(p, uint32(elf.PT_LOAD))
		binary.LittleEndian.PutUint32(p[4:], uint32(elf.PF_R|elf.PF_X))
		for at, value := range map[int]uint64{8: 0x1000, 16: s.address, 32: s.size, 40: s.memory} {
			binary.LittleEndian.PutUint64(p[at:], value)
		}
	}
	o, err := New("damaged", data)
	if err != nil {
		t.Fatal(err)
	}
	if list := o.SyntheticSections(); len(list) < 2 || o.SyntheticSection(".text") == nil {
		t.Errorf("%d sections, %v", len(list), o.Problems())
	}
}
