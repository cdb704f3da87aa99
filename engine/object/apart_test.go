// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"
)

func TestSectionsOverTheSameBytesAreReadOnce(t *testing.T) {
	frame := func(name string, offset, size uint64, alloc bool) testSection {
		s := testSection{name: name, typ: elf.SHT_PROGBITS, offset: offset, size: size}
		if alloc {
			s.flags = elf.SHF_ALLOC
		}
		return s
	}
	sections := []testSection{
		{name: ".eh_frame", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, data: make([]byte, 64)},           // 1, at 64
		{name: ".debug_frame", typ: elf.SHT_PROGBITS, data: make([]byte, 64)},                              // 2
		frame(".eh_frame", 64, 64, true), frame(".eh_frame", 64, 1, true), frame(".eh_frame", 63, 2, true), // 3, 4, 5
		{name: ".eh_frame", typ: elf.SHT_NOBITS, flags: elf.SHF_ALLOC, size: 1000}, // 6
		frame(".other", 64, 64, true), // 7: of another name
	}
	o := mustNew(t, testFile{typ: elf.ET_REL, sections: sections}.bytes())
	if at := o.Sections()[1].Offset; at != 64 {
		t.Fatalf("section 1 is at %d", at)
	}
	list, err := o.SectionsNamed(".eh_frame", ".debug_frame")
	wantError(t, err, nil, "section .eh_frame (1): offset 0x40: expected bytes that no other section has: it and 2 more are not read")
	var got []int
	for _, s := range list {
		got = append(got, s.Index)
	}
	if !slices.Equal(got, []int{2, 5}) { // 5 begins before the others
		t.Errorf("sections %v", got)
	}
	frames := o.EHFrames()
	if len(frames) != 2 || frames[0].Section == nil || frames[0].Section.Index != 5 || frames[1].Err == nil {
		t.Errorf("%+v", frames)
	}
}

func TestRelocationsOverTheSameBytesAreReadOnce(t *testing.T) {
	one := relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, 0, 0, 1, 0x77)
	sections := []testSection{
		{name: ".rela.debug_info", typ: elf.SHT_RELA, data: one, info: 2},
		{name: ".debug_info", typ: elf.SHT_PROGBITS, data: make([]byte, 16)},
		{name: ".debug_line", typ: elf.SHT_PROGBITS, data: make([]byte, 16)},
		{name: ".rela.debug_line", typ: elf.SHT_RELA, offset: 64, size: 24, info: 3},
	}
	o := mustNew(t, testFile{typ: elf.ET_REL, sections: sections}.bytes())
	o.SetRelocations(testRelocations)
	if len(o.Problems()) != 1 {
		t.Errorf("problems %q", o.Problems())
	}
	for name, want := range map[string]byte{".debug_info": 0x77, ".debug_line": 0} {
		if b, err := o.Section(name).Data(); err != nil || b[0] != want {
			t.Errorf("%s: % x, %v", name, b, err)
		}
	}
}
