// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeadersAreReadInEveryClassAndOrder(t *testing.T) {
	programs := []Program{
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Offset: 0x10, Address: 0x400010, PhysicalAddress: 0x77, FileSize: 0x20, MemSize: 0x30, Align: 0x1000},
		{Type: elf.PT_NOTE, Flags: elf.PF_R, Offset: 0x50, FileSize: 4},
	}
	for _, form := range forms {
		for _, extended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, extended %v", form.name, extended), func(t *testing.T) {
				o := mustNew(t, testFile{class: form.class, order: form.order, machine: 0x3e, programs: programs, extended: extended, sections: []testSection{
					{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, address: 0x1000, data: []byte("code"), align: 16, entrySize: 3, link: 1, info: 2},
					{name: ".bss", typ: elf.SHT_NOBITS, size: 1 << 20},
				}}.bytes())
				if len(o.Problems()) != 0 {
					t.Errorf("problems: %q", o.Problems())
				}
				if o.Class() != form.class || o.ByteOrder() != binary.ByteOrder(form.order) || o.Machine() != 0x3e || o.OSABI() != 3 ||
					o.Flags() != 0x77 || o.Entry() != 0x1234 || o.Type() != elf.ET_DYN {
					t.Errorf("header is wrong: %+v", o.header)
				}
				if diff := cmp.Diff(programs, o.Programs()); diff != "" {
					t.Errorf("programs (-want +got):\n%s", diff)
				}
				want := []Segment{{Offset: 0x10, FileSize: 0x20, Address: 0x400010, MemSize: 0x30, Align: 0x1000, Flags: elf.PF_R | elf.PF_X}}
				if diff := cmp.Diff(want, o.Segments()); diff != "" {
					t.Errorf("segments (-want +got):\n%s", diff)
				}
				text := o.Section(".text")
				if text == nil || len(o.Sections()) != 4 {
					t.Fatalf("sections: %d, .text %v", len(o.Sections()), text)
				}
				if text.Type != elf.SHT_PROGBITS || text.Flags != elf.SHF_ALLOC|elf.SHF_EXECINSTR || text.Address != 0x1000 ||
					text.Size != 4 || text.Link != 1 || text.Info != 2 || text.Align != 16 || text.EntrySize != 3 || text.Index != 1 {
					t.Errorf(".text is wrong: %+v", text)
				}
				if b, err := text.Data(); string(b) != "code" || err != nil {
					t.Errorf(".text holds %q, %v", b, err)
				}
				_, err := o.Section(".bss").Data()
				wantError(t, err, ErrNoData, "section .bss (2)")
				if o.Section(".none") != nil || o.Section("") != nil {
					t.Error("a section that is not there was found")
				}
			})
		}
	}
}

func TestMoreProgramsThanFitTheHeaderAreRead(t *testing.T) {
	var programs []Program
	for i := range uint64(70000) {
		programs = append(programs, Program{Type: elf.PT_LOAD, Address: i << 12, MemSize: 1 << 12})
	}
	file := testFile{typ: elf.ET_CORE, programs: programs, extended: true}
	for i := range programs {
		programs[i].Offset, programs[i].FileSize = 64+70000*56, 8
	}
	b := file.bytes()
	o := mustNew(t, b)
	if len(o.Programs()) != 70000 || len(o.Problems()) != 0 {
		t.Errorf("%d programs, problems %q", len(o.Programs()), o.Problems())
	}

	// A core that was cut has lost section header 0, which is at its end.
	o = mustNew(t, b[:len(b)-64])
	if len(o.Programs()) != 70000 || len(o.Problems()) == 0 || !strings.Contains(o.Problems()[0], "PN_XNUM") {
		t.Errorf("cut: %d programs, problems %q", len(o.Programs()), o.Problems())
	}
	if diff := cmp.Diff(programs, o.Programs()); diff != "" {
		t.Errorf("cut: programs (-want +got):\n%s", diff)
	}
}

func TestMoreSectionsThanFitTheHeaderAreRead(t *testing.T) {
	var sections []testSection
	for i := range 70000 {
		sections = append(sections, testSection{name: fmt.Sprintf(".s%d", i), typ: elf.SHT_PROGBITS})
	}
	o := mustNew(t, testFile{sections: sections, extended: true}.bytes())
	if s := o.Section(".s69999"); len(o.Sections()) != 70002 || s == nil || s.Index != 70000 {
		t.Errorf("%d sections, .s69999 is %v", len(o.Sections()), s)
	}
}

func TestBadHeadersAreErrors(t *testing.T) {
	good := testFile{programs: []Program{{Type: elf.PT_LOAD}}, sections: []testSection{{name: ".text", typ: elf.SHT_PROGBITS, data: []byte("code")}}}.bytes()
	put := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	tests := []struct {
		name   string
		change func([]byte) []byte
		is     error
		says   string
	}{
		{"empty", func([]byte) []byte { return nil }, ErrNotELF, "test"},
		{"other magic", put(0, 'M', 'Z'), ErrNotELF, ""},
		{"cut in the identification", func(b []byte) []byte { return b[:10] }, ErrNotELF, "10 of 16"},
		{"cut in the header", func(b []byte) []byte { return b[:63] }, nil, "63 bytes, expected 64"},
		{"class", put(4, 3), nil, "ELF class 3, expected 1 or 2"},
		{"byte order", put(5, 0), nil, "byte order 0"},
		{"version", put(6, 2), nil, "version 2, expected 1"},
		{"program headers outside", put(32, 0xff, 0xff, 0xff), nil, "1 program headers at offset 0xffffff"},
		{"program headers at the end of the address space", put(32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), nil, "program headers at offset"},
		{"program header size", put(54, 8), nil, "program headers of 8 bytes, expected 56"},
		{"extended count without section headers", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[40:], 0)
			binary.LittleEndian.PutUint16(b[56:], pnXNUM)
			return b
		}, nil, "PN_XNUM"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New("test", test.change(bytes.Clone(good)))
			wantError(t, err, test.is, test.says)
		})
	}
}

func TestBadSectionHeadersLeaveTheProgramHeaders(t *testing.T) {
	good := testFile{programs: []Program{{Type: elf.PT_LOAD}}, sections: []testSection{{name: ".text", typ: elf.SHT_PROGBITS, data: []byte("code")}}}.bytes()
	shoff := int(binary.LittleEndian.Uint64(good[40:]))
	tests := []struct {
		name     string
		change   func([]byte) []byte
		says     string
		sections int
	}{
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, "3 section headers at offset", 0},
		{"all lost", func(b []byte) []byte { return b[:shoff] }, "are not in the", 0},
		{"entry size", func(b []byte) []byte { b[58] = 8; return b }, "too small", 0},
		{"no null section", func(b []byte) []byte { b[shoff+4] = 1; return b }, "section header 0 has type 0x1", 0},
		{"count", func(b []byte) []byte { b[60], b[61] = 0, 0; b[shoff+32+7] = 0x80; return b }, "expected at most", 0},
		{"name table index", func(b []byte) []byte { b[62] = 9; return b }, "section name table is section 9 of 3", 3},
		{"name table type", func(b []byte) []byte { b[62] = 1; return b }, "is not a string table", 3},
		{"name outside", func(b []byte) []byte { b[shoff+64+1] = 0x70; return b }, "name of section 1", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := mustNew(t, test.change(bytes.Clone(good)))
			if len(o.Problems()) != 1 || !strings.Contains(o.Problems()[0], test.says) {
				t.Errorf("problems %q, expected one that says %q", o.Problems(), test.says)
			}
			if len(o.Programs()) != 1 || len(o.Sections()) != test.sections {
				t.Errorf("%d programs and %d sections, expected 1 and %d", len(o.Programs()), len(o.Sections()), test.sections)
			}
		})
	}
}

func TestStringsEndAtTheirNUL(t *testing.T) {
	long := strings.Repeat("x", 5*stringBlock+7)
	table := newStringTable([]byte("\x00ab\x00" + long + "\x00tail"))
	tests := []struct {
		offset uint64
		want   string
		ok     bool
	}{
		{0, "", true},
		{1, "ab", true},
		{2, "b", true},
		{4, long, true},
		{4 + stringBlock, long[stringBlock:], true},
		{4 + uint64(len(long)), "", true},
		{5 + uint64(len(long)), "", false}, // no NUL follows
		{9 + uint64(len(long)), "", false},
		{1 << 60, "", false},
	}
	for _, test := range tests {
		if got, ok := table.at(test.offset); got != test.want || ok != test.ok {
			t.Errorf("string at %d is %.20q, %v, expected %.20q, %v", test.offset, got, ok, test.want, test.ok)
		}
	}
	b := []byte(long)
	unterminated := newStringTable(b)
	if s, ok := unterminated.at(0); ok {
		t.Errorf("a table without NUL has the string %.20q", s)
	}
}

// TestHeadersAreThoseOfTheStandardLibrary compares with debug/elf on real files.
func TestHeadersAreThoseOfTheStandardLibrary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{self, compile(t), compile(t, "-c"), compile(t, "-shared", "-fPIC"), compile(t, "-static")} {
		o := mustOpen(t, path)
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var programs []Program
		for _, p := range f.Progs {
			programs = append(programs, Program{p.Type, p.Flags, p.Off, p.Vaddr, p.Paddr, p.Filesz, p.Memsz, p.Align})
		}
		if diff := cmp.Diff(programs, o.Programs()); diff != "" {
			t.Errorf("%s: programs (-want +got):\n%s", path, diff)
		}
		if len(f.Sections) != len(o.Sections()) {
			t.Fatalf("%s: %d sections, expected %d", path, len(o.Sections()), len(f.Sections))
		}
		for i, want := range f.Sections {
			got := o.Sections()[i]
			header := elf.SectionHeader{Name: got.Name, Type: got.Type, Flags: got.Flags, Addr: got.Address, Offset: got.Offset,
				Size: got.Size, Link: got.Link, Info: got.Info, Addralign: got.Align, Entsize: got.EntrySize, FileSize: want.FileSize}
			if want.Flags&elf.SHF_COMPRESSED != 0 {
				header.Size, header.Addralign = want.Size, want.Addralign
			}
			if diff := cmp.Diff(want.SectionHeader, header); diff != "" {
				t.Errorf("%s: section %d (-want +got):\n%s", path, i, diff)
			}
			if want.Type == elf.SHT_NOBITS || want.Type == elf.SHT_NULL || o.Type() == elf.ET_REL {
				continue
			}
			wantData, err := want.Data()
			if err != nil {
				t.Fatal(err)
			}
			data, err := got.Data()
			if err != nil || !bytes.Equal(data, wantData) {
				t.Errorf("%s: section %s differs: %v", path, want.Name, err)
			}
		}
		compareSymbols(t, o, f)
	}
}

func compareSymbols(t *testing.T, o *Object, f *elf.File) {
	t.Helper()
	var want, got []Symbol
	for _, dynamic := range []bool{false, true} {
		list, err := f.Symbols()
		if dynamic {
			list, err = f.DynamicSymbols()
		}
		if err != nil && !strings.Contains(err.Error(), "no symbol section") {
			t.Fatal(err)
		}
		for _, s := range list {
			want = append(want, Symbol{Name: s.Name, Address: s.Value, Size: s.Size, Section: uint32(s.Section),
				Type: elf.ST_TYPE(s.Info), Binding: elf.ST_BIND(s.Info), Other: s.Other, Dynamic: dynamic})
		}
	}
	got, err := o.Symbols()
	if err != nil {
		t.Errorf("%s: %v", o.Name(), err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: symbols (-want +got):\n%s", o.Name(), diff)
	}
}
