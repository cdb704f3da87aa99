// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// collect gives notes as text, and errors.
func collect(notes iter.Seq2[Note, error]) (list []string, problems []error) {
	for n, err := range notes {
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, fmt.Sprintf("%s %#x % x", n.Owner, n.Type, n.Data))
	}
	return list, problems
}

// coreWith is a core whose notes are b.
func coreWith(class elf.Class, order byteOrder, align uint64, b []byte) []byte {
	header := testFile{class: class, order: order, typ: elf.ET_CORE, programs: make([]Program, 1)}
	offset := uint64(len(header.bytes()))
	header.programs[0] = Program{Type: elf.PT_NOTE, Offset: offset, FileSize: uint64(len(b)), Align: align}
	return append(header.bytes(), b...)
}

func TestNotesAreReadWithTheirAlignment(t *testing.T) {
	for _, form := range forms {
		for _, align := range []uint64{0, 1, 4, 8} {
			pad := 4
			if align == 8 {
				pad = 8
			}
			t.Run(fmt.Sprintf("%s, alignment %d", form.name, align), func(t *testing.T) {
				b := note(form.order, pad, "CORE", 1, []byte("12345"))
				b = append(b, note(form.order, pad, "LINUX", 0x202, []byte("abcd"))...)
				b = append(b, note(form.order, pad, "E", 7, nil)...)
				b = append(b, note(form.order, pad, "LONGER", 8, []byte("x"))...)
				o := mustNew(t, coreWith(form.class, form.order, align, b))
				got, problems := collect(o.Notes())
				want := []string{"CORE 0x1 31 32 33 34 35", "LINUX 0x202 61 62 63 64", "E 0x7 ", "LONGER 0x8 78"}
				if diff := cmp.Diff(want, got); diff != "" || problems != nil {
					t.Errorf("notes (-want +got):\n%s%v", diff, problems)
				}
			})
		}
	}
}

func TestNotesOfAnOwnerWithoutName(t *testing.T) {
	b := []byte{0, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 'h', 'i'} // the last padding is not there
	o := mustNew(t, coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, b))
	got, problems := collect(o.Notes())
	if diff := cmp.Diff([]string{" 0x9 68 69"}, got); diff != "" || problems != nil {
		t.Errorf("notes (-want +got):\n%s%v", diff, problems)
	}
}

func TestBadNotesAreErrors(t *testing.T) {
	good := note(binary.LittleEndian, 4, "CORE", 1, []byte("1234"))
	with := func(at int, v uint32) []byte {
		b := append(bytes.Clone(good), good...)
		binary.LittleEndian.PutUint32(b[len(good)+at:], v)
		return b
	}
	tests := []struct {
		name string
		b    []byte
		says string
	}{
		{"header cut", append(bytes.Clone(good), 1, 2, 3), "segment 0 (PT_NOTE): offset 0x90: note header cut: 3 bytes, expected 12"},
		{"owner too long", with(0, 1000), "note owner of 0x3e8 bytes"},
		{"owner as long as can be", with(0, 0xffffffff), "note owner of 0xffffffff bytes"},
		{"data too long", with(4, 5), "has 0x5 bytes at"},
		{"data as long as can be", with(4, 0xffffffff), "has 0xffffffff bytes at"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := mustNew(t, coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, test.b))
			got, problems := collect(o.Notes())
			if len(got) != 1 || len(problems) != 1 {
				t.Fatalf("%d notes and problems %q, expected 1 of each", len(got), problems)
			}
			wantError(t, problems[0], nil, test.says)
		})
	}
}

func TestNotesOfACutFileAreThoseThatAreThere(t *testing.T) {
	b := coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, bytes.Repeat(note(binary.LittleEndian, 4, "CORE", 1, []byte("1234")), 10))
	for size := len(b) - 10*24; size < len(b); size++ {
		got, problems := collect(mustNew(t, b[:size]).Notes())
		if want := (size - (len(b) - 10*24)) / 24; len(got) != want || len(problems) != 1 {
			t.Errorf("cut at %d: %d notes and problems %q, expected %d", size, len(got), problems, want)
		} else {
			wantError(t, problems[0], nil, "is not in the")
		}
	}
}

func TestNotesThatOverlapEndTheWalk(t *testing.T) {
	b := bytes.Repeat(note(binary.LittleEndian, 4, "CORE", 1, []byte("1234")), 1000)
	f := testFile{typ: elf.ET_CORE, programs: make([]Program, 5000)}
	offset := uint64(len(f.bytes()))
	for i := range f.programs {
		f.programs[i] = Program{Type: elf.PT_NOTE, Offset: offset, FileSize: uint64(len(b))}
	}
	got, problems := collect(mustNew(t, append(f.bytes(), b...)).Notes())
	if len(got) > 40000 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "overlap") {
		t.Errorf("%d notes, %v", len(got), problems)
	}
}

func TestNotesStopWhenTheCallerDoes(t *testing.T) {
	o := mustNew(t, coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, bytes.Repeat(note(binary.LittleEndian, 4, "CORE", 1, nil), 10)))
	n := 0
	for range o.Notes() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d notes", n)
	}
}

func TestBuildIDIsFoundInSectionsAndSegments(t *testing.T) {
	id, other := []byte("the build ID"), []byte("another one!")
	gnu := func(id []byte) []byte { return note(binary.LittleEndian, 4, "GNU", noteBuildID, id) }
	section := func(b []byte) []testSection {
		return []testSection{{name: ".note.x", typ: elf.SHT_NOTE, align: 4, data: b}}
	}
	// The program header names the bytes of the section, which begin after the headers.
	segment := func(b []byte, sections []testSection) []byte {
		f := testFile{programs: []Program{{Type: elf.PT_NOTE, Align: 4}}, sections: append([]testSection{{name: ".x", typ: elf.SHT_PROGBITS, data: b}}, sections...)}
		f.programs[0].Offset, f.programs[0].FileSize = 64+56, uint64(len(b))
		return f.bytes()
	}
	tests := []struct {
		name string
		file []byte
		want []byte
	}{
		{"section", testFile{sections: section(gnu(id))}.bytes(), id},
		{"section, after other notes", testFile{sections: section(append(note(binary.LittleEndian, 4, "Go", 4, []byte("go id")), gnu(id)...))}.bytes(), id},
		{"segment", segment(gnu(id), nil), id},
		{"segment beside sections without one", segment(gnu(id), section(note(binary.LittleEndian, 4, "GNU", 5, id))), id},
		{"section and segment", segment(gnu(other), section(gnu(id))), id},
		{"none", testFile{}.bytes(), nil},
		{"other owner", testFile{sections: section(note(binary.LittleEndian, 4, "GNUX", noteBuildID, id))}.bytes(), nil},
		{"empty", testFile{sections: section(gnu(nil))}.bytes(), nil},
		{"too long", testFile{sections: section(gnu(make([]byte, 1000)))}.bytes(), nil},
		{"of a core", coreWith(elf.ELFCLASS64, binary.LittleEndian, 4, gnu(id)), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := mustNew(t, test.file).BuildID(); !bytes.Equal(got, test.want) {
				t.Errorf("build ID %q, expected %q", got, test.want)
			}
		})
	}
}

func TestBuildIDIsThatOfReadelf(t *testing.T) {
	path := compile(t, "-Wl,--build-id=sha1")
	want := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindStringSubmatch(oracle.Run(t, "readelf", "-n", path))
	if want == nil {
		t.Fatal("readelf shows none")
	}
	if got := fmt.Sprintf("%x", mustOpen(t, path).BuildID()); got != want[1] {
		t.Errorf("build ID %s, expected %s", got, want[1])
	}
	// Without section headers it is in PT_NOTE.
	if got := fmt.Sprintf("%x", mustNew(t, sectionless(read(t, path))).BuildID()); got != want[1] {
		t.Errorf("without section headers: build ID %s, expected %s", got, want[1])
	}
}

// sectionless takes the section headers off a little-endian file.
func sectionless(b []byte) []byte {
	offset, counts := b[40:48], b[60:64]
	if b[elf.EI_CLASS] == byte(elf.ELFCLASS32) {
		offset, counts = b[32:36], b[48:52]
	}
	clear(offset)
	clear(counts)
	return b
}
