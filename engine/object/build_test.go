// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk/reloc"
)

// A testFile is an ELF file made by hand.
type testFile struct {
	class    elf.Class
	order    byteOrder
	typ      elf.Type
	machine  uint16
	programs []Program
	sections []testSection // from section 1 on
	extended bool          // all counts by section header 0
	noNames  bool
}

type testSection struct {
	name             string
	typ              elf.SectionType
	flags            elf.SectionFlag
	address          uint64
	data             []byte
	link, info       uint32
	align, entrySize uint64
	size             uint64 // of SHT_NOBITS
	offset           uint64 // where not 0, the claimed offset
}

// record appends integers of an ELF record in the file's class and order.
type record struct {
	f *testFile
	b []byte
}

func (r *record) u16(v uint16) { r.b = r.f.order.AppendUint16(r.b, v) }
func (r *record) u32(v uint32) { r.b = r.f.order.AppendUint32(r.b, v) }
func (r *record) word(v uint64) {
	if r.f.class == elf.ELFCLASS64 {
		r.b = r.f.order.AppendUint64(r.b, v)
	} else {
		r.u32(uint32(v))
	}
}

func (f testFile) bytes() []byte {
	if f.class == 0 {
		f.class = elf.ELFCLASS64
	}
	if f.order == nil {
		f.order = binary.LittleEndian
	}
	if f.typ == 0 {
		f.typ = elf.ET_DYN
	}
	if f.machine == 0 {
		f.machine = uint16(elf.EM_X86_64)
	}
	ehsize, phsize, shsize := uint16(64), uint16(56), uint16(64)
	if f.class == elf.ELFCLASS32 {
		ehsize, phsize, shsize = 52, 32, 40
	}
	sections := append([]testSection(nil), f.sections...)
	var names []byte
	if len(sections) > 0 && !f.noNames {
		names = []byte{0}
		sections = append(sections, testSection{name: ".shstrtab", typ: elf.SHT_STRTAB})
		for _, s := range sections {
			names = append(append(names, s.name...), 0)
		}
		sections[len(sections)-1].data = names
	}
	body := make([]byte, int(ehsize)+int(phsize)*len(f.programs))
	offsets := make([]uint64, len(sections))
	for i, s := range sections {
		for len(body)%8 != 0 {
			body = append(body, 0)
		}
		offsets[i] = uint64(len(body))
		body = append(body, s.data...)
	}
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	shoff := uint64(len(body))
	shnum, shstrndx := uint64(len(sections))+1, uint64(len(sections))
	if f.noNames {
		shstrndx = 0
	}
	if len(sections) == 0 && !f.extended {
		shoff, shnum, shstrndx = 0, 0, 0
	}
	phnum := uint64(len(f.programs))

	r := record{f: &f}
	r.b = append(r.b, elf.ELFMAG...)
	data := byte(elf.ELFDATA2LSB)
	if f.order == binary.BigEndian {
		data = byte(elf.ELFDATA2MSB)
	}
	r.b = append(r.b, byte(f.class), data, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0)
	r.u16(uint16(f.typ))
	r.u16(f.machine)
	r.u32(1)
	r.word(0x1234) // entry
	r.word(uint64(ehsize))
	r.word(shoff)
	r.u32(0x77) // flags
	r.u16(ehsize)
	r.u16(phsize)
	first := testSection{}
	if f.extended {
		r.u16(pnXNUM)
		first.size, first.link, first.info = shnum, uint32(shstrndx), uint32(phnum)
	} else {
		r.u16(uint16(phnum))
	}
	r.u16(shsize)
	if f.extended {
		r.u16(0)
		r.u16(uint16(elf.SHN_XINDEX))
	} else {
		r.u16(uint16(shnum))
		r.u16(uint16(shstrndx))
	}
	for _, p := range f.programs {
		r.u32(uint32(p.Type))
		if f.class == elf.ELFCLASS64 {
			r.u32(uint32(p.Flags))
		}
		r.word(p.Offset)
		r.word(p.Address)
		r.word(p.PhysicalAddress)
		r.word(p.FileSize)
		r.word(p.MemSize)
		if f.class == elf.ELFCLASS32 {
			r.u32(uint32(p.Flags))
		}
		r.word(p.Align)
	}
	copy(body, r.b)
	if shoff == 0 {
		return body
	}
	h := record{f: &f}
	header := func(name uint32, s testSection, offset uint64) {
		h.u32(name)
		h.u32(uint32(s.typ))
		h.word(uint64(s.flags))
		h.word(s.address)
		h.word(offset)
		h.word(max(s.size, uint64(len(s.data))))
		h.u32(s.link)
		h.u32(s.info)
		h.word(s.align)
		h.word(s.entrySize)
	}
	header(0, first, 0)
	name := uint32(1)
	for i, s := range sections {
		offset := offsets[i]
		if s.offset != 0 {
			offset = s.offset
		}
		if f.noNames {
			header(0, s, offset)
			continue
		}
		header(name, s, offset)
		name += uint32(len(s.name)) + 1
	}
	return append(body, h.b...)
}

// forms are the classes and byte orders of ELF.
var forms = []struct {
	name  string
	class elf.Class
	order byteOrder
}{
	{"64-bit little-endian", elf.ELFCLASS64, binary.LittleEndian},
	{"64-bit big-endian", elf.ELFCLASS64, binary.BigEndian},
	{"32-bit little-endian", elf.ELFCLASS32, binary.LittleEndian},
	{"32-bit big-endian", elf.ELFCLASS32, binary.BigEndian},
}

// note makes a note, padded to align.
func note(order byteOrder, align int, owner string, typ uint32, data []byte) []byte {
	pad := func(b []byte) []byte {
		for len(b)%align != 0 {
			b = append(b, 0)
		}
		return b
	}
	var b []byte
	b = order.AppendUint32(b, uint32(len(owner)+1))
	b = order.AppendUint32(b, uint32(len(data)))
	b = order.AppendUint32(b, typ)
	b = pad(append(append(b, owner...), 0))
	return pad(append(b, data...))
}

// withBuildID makes an executable with a build ID (none when id is nil) and
// text that is different from file to file.
func withBuildID(id []byte, text string) []byte {
	f := testFile{sections: []testSection{
		{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, data: []byte(text)},
	}}
	if id != nil {
		f.sections = append(f.sections, testSection{name: ".note.gnu.build-id", typ: elf.SHT_NOTE, flags: elf.SHF_ALLOC,
			align: 4, data: note(binary.LittleEndian, 4, "GNU", noteBuildID, id)})
	}
	return f.bytes()
}

const testSource = `
#include <stdio.h>
#include <stdlib.h>
struct point { int x, y; const char *name; };
static int table[100];
__thread int local;
static int helper(struct point *p) { table[p->x % 100] += p->y; local++; return table[0]; }
int exported(int n) { struct point p = { n, n + 1, "p" }; return helper(&p) + local; }
int (*pointer)(int) = exported;
int main(int argc, char **argv) { printf("%d\n", pointer(argc)); return 0; }
`

// compile builds testSource and returns the path of the result.
func compile(t testing.TB, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "test.c"), filepath.Join(dir, "test.out")
	write(t, source, []byte(testSource))
	oracle.Run(t, "gcc", append([]string{"-g", "-O1", "-o", out, source}, args...)...)
	return out
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustOpen(t testing.TB, path string) *Object {
	t.Helper()
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func mustNew(t testing.TB, b []byte) *Object {
	t.Helper()
	o, err := New("test", b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wantError checks that err wraps target, or, where that is nil, says text.
func wantError(t testing.TB, err, target error, text string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, expected one")
	case target != nil && !errors.Is(err, target):
		t.Errorf("error %q is not %q", err, target)
	case !bytes.Contains([]byte(err.Error()), []byte(text)):
		t.Errorf("error %q does not say %q", err, text)
	}
}

// x86Relocations are the types that debug sections of x86-64 use.
var x86Relocations = []reloc.Entry{
	{Type: uint32(elf.R_X86_64_NONE), Kind: reloc.None},
	{Type: uint32(elf.R_X86_64_64), Size: 8, Kind: reloc.Absolute},
	{Type: uint32(elf.R_X86_64_PC32), Size: 4, Kind: reloc.Relative},
	{Type: uint32(elf.R_X86_64_32), Size: 4, Kind: reloc.Absolute},
	{Type: uint32(elf.R_X86_64_32S), Size: 4, Kind: reloc.Absolute},
	{Type: uint32(elf.R_X86_64_DTPOFF64), Size: 8, Kind: reloc.Absolute},
	{Type: uint32(elf.R_X86_64_DTPOFF32), Size: 4, Kind: reloc.Absolute},
	{Type: uint32(elf.R_X86_64_PC64), Size: 8, Kind: reloc.Relative},
}

func onX86(t testing.TB) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the compiler's output is looked at as x86-64 code")
	}
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// compressedFile is a 64-bit little-endian file with a compressed .debug_str.
func compressedFile(kind uint32, packed []byte, size uint64) []byte {
	return testFile{sections: []testSection{{name: ".debug_str", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED,
		data: append(chdr(elf.ELFCLASS64, binary.LittleEndian, kind, size), packed...)}}}.bytes()
}
