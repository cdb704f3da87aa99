// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// placedSections are the sections that a layout gives an address.
func placedSections(o *Object) map[string]uint64 {
	list := map[string]uint64{}
	for _, s := range o.Sections() {
		if s.Address != 0 {
			list[s.Name] = s.Address
		}
	}
	return list
}

func TestLaidOutSectionsHaveAddressesOfTheirOwn(t *testing.T) {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	text := func(name string, size int, align uint64) testSection {
		return testSection{name: name, typ: elf.SHT_PROGBITS, flags: code, data: make([]byte, size), align: align}
	}
	sections := []testSection{
		text(".text.a", 5, 16), text(".text", 0, 16), text(".text.b", 0x1001, 0x4000), text(".text.odd", 1, 24),
		{name: ".bss", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, size: 0x5000},
		{name: ".debug_info", typ: elf.SHT_PROGBITS, data: make([]byte, 9)},
		{name: ".data", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, data: make([]byte, 3)},
	}
	o := mustNew(t, testFile{typ: elf.ET_REL, sections: sections}.bytes())
	laid, err := o.LaidOut()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{".text.a": 0x1000, ".text.b": 0x4000, ".text.odd": 0x7000, ".bss": 0x9000, ".data": 0xf000}
	if diff := cmp.Diff(want, placedSections(laid)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]uint64{}, placedSections(o)); diff != "" || laid.Name() != o.Name() {
		t.Error(diff)
	}
	for name, file := range map[string]testFile{
		"one section of code": {typ: elf.ET_REL, sections: []testSection{sections[0], sections[1], sections[4]}},
		"none":                {typ: elf.ET_REL},
		"not relocatable":     {typ: elf.ET_DYN, sections: sections},
		"laid out in the file": {typ: elf.ET_REL, sections: append([]testSection{
			{name: ".x", typ: elf.SHT_PROGBITS, address: 1, data: []byte{1}}}, sections...)},
	} {
		o := mustNew(t, file.bytes())
		if laid, err := o.LaidOut(); laid != o || err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	huge := func(class elf.Class, sizes ...uint64) error {
		list := []testSection{sections[0], sections[2]}
		for _, n := range sizes {
			list = append(list, testSection{name: ".bss", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC, size: n})
		}
		_, err := mustNew(t, testFile{class: class, typ: elf.ET_REL, sections: list}.bytes()).LaidOut()
		return err
	}
	for _, sizes := range [][]uint64{{math.MaxUint64}, {math.MaxInt64}, {math.MaxInt64 - 0x10000, 0x10000}, {math.MaxInt64 - 0x6000, 1, 1}} {
		wantError(t, huge(elf.ELFCLASS64, sizes...), nil, "do not fit into the address space")
	}
	wantError(t, huge(elf.ELFCLASS32, 0xf0000000, 0xf0000000), nil, "section .bss (4)")
	if err := huge(elf.ELFCLASS32, 0xf0000000, 0x1000); err != nil {
		t.Error(err)
	}
}

// Both share the file, which only the object unmaps.
func TestClosingWhatIsLaidOutDoesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.o")
	code := testSection{name: ".text.a", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, data: []byte("code")}
	other := code
	other.name = ".text.b"
	if err := os.WriteFile(path, testFile{typ: elf.ET_REL, sections: []testSection{code, other}}.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	laid, err := o.LaidOut()
	if err != nil || laid == o || laid.Path() != path {
		t.Fatalf("%v, %v", laid, err)
	}
	if err := laid.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := o.Section(".text.b").Data(); err != nil || string(b) != "code" {
		t.Errorf("%q, %v", b, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
