// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

func fuzzSeeds(f *testing.F) {
	for _, form := range forms {
		f.Add(testFile{class: form.class, order: form.order, programs: []Program{
			{Type: elf.PT_LOAD, Flags: elf.PF_X, Address: 0x1000, FileSize: 0x100, MemSize: 0x200},
			{Type: elf.PT_GNU_EH_FRAME, Offset: 0x40, Address: 0x1040, FileSize: 0x20},
			{Type: elf.PT_NOTE, Offset: 0x80, FileSize: 0x40, Align: 8},
		}, sections: []testSection{
			{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, data: []byte("code")},
			{name: ".note", typ: elf.SHT_NOTE, data: note(form.order, 4, "GNU", noteBuildID, []byte("id"))},
			{name: ".gnu_debuglink", typ: elf.SHT_PROGBITS, data: []byte("a.debug\x00\x04\x03\x02\x01")},
			{name: ".debug_str", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: append(chdr(form.class, form.order, compressZLIB, 100), packZLIB(text(100))...)},
			{name: ".debug_line", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: append(chdr(form.class, form.order, compressZSTD, 100), packZSTD(text(100))...)},
			{name: ".gnu_debugdata", typ: elf.SHT_PROGBITS, data: packXZ(f, withBuildID([]byte("x"), "text"), xz.WriterConfig{})},
		}}.bytes())
		f.Add(coreWith(form.class, form.order, 4, bytes.Repeat(note(form.order, 4, "CORE", 1, text(30)), 5)))
		f.Add(testFile{class: form.class, order: form.order, extended: true, programs: make([]Program, 3), sections: []testSection{{name: ".x"}}}.bytes())
		for _, rel := range []elf.SectionType{elf.SHT_RELA, elf.SHT_REL} {
			f.Add(relocatableFile(form.class, form.order, rel, relocation(form.class, form.order, rel, 4, 1, 1, 5)))
		}
	}
	f.Add(dynamicFile(elf.DT_HASH, []byte{1, 0, 0, 0, 2, 0, 0, 0}))
	f.Add(dynamicFile(elf.DT_GNU_HASH, gnuHash(1, 1, 0, []uint32{1}, []uint32{3})))
	// Real files, where there is a compiler.
	source := filepath.Join(f.TempDir(), "t.c")
	if err := os.WriteFile(source, []byte("int f(int x) { return x + 1; }\n"), 0o644); err != nil {
		f.Fatal(err)
	}
	for _, args := range []string{"gcc -c", "gcc -c -gz", "gcc -shared -fPIC", "gcc -shared -fPIC -Wl,--hash-style=sysv", mingw + " -shared -nostdlib -Wl,--build-id"} {
		out := source + ".out"
		compiler, args, _ := strings.Cut(args, " ")
		if exec.Command(compiler, append(strings.Fields(args), "-g", "-O1", "-o", out, source)...).Run() != nil {
			continue
		}
		if b, err := os.ReadFile(out); err == nil {
			f.Add(b)
			f.Add(sectionless(bytes.Clone(b)))
		}
	}
}

// FuzzObject reads all there is to read of any bytes.
func FuzzObject(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		o, err := New("fuzz", b)
		if err != nil {
			return
		}
		o.SetRelocations(x86Relocations)
		if n := exercise(o); n != 0 {
			t.Errorf("%d faults in memory", n)
		}
		symbols, _ := o.Symbols()
		if len(symbols) > 2*len(b)/16 && !o.IsPE() || len(symbols) > len(b) { // names of exports may share bytes
			t.Errorf("%d symbols in %d bytes", len(symbols), len(b))
		}
		for _, s := range symbols {
			if strings.IndexByte(s.Name, 0) >= 0 {
				t.Errorf("symbol %q", s.Name)
			}
		}
		for n, err := range o.Notes() {
			if err == nil && n.Offset+uint64(len(n.Data)) > uint64(len(b)) {
				t.Errorf("note at %#x has %d bytes", n.Offset, len(n.Data))
			}
		}
		buf := make([]byte, 64)
		for _, p := range o.Programs() {
			if n, err := o.ReadAddress(buf, p.Address+p.MemSize-8); n < 0 || n > 64 || (n < 64) != (err != nil) {
				t.Errorf("read %d bytes, %v", n, err)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the bytes were changed")
		}
	})
}

// FuzzDecompress unpacks any bytes as each form of compressed section.
func FuzzDecompress(f *testing.F) {
	for _, b := range [][]byte{nil, text(10), text(5000), make([]byte, 100000)} {
		f.Add(packZLIB(b), uint64(len(b)), uint8(0))
		f.Add(packZSTD(b), uint64(len(b)), uint8(1))
		f.Add(packXZ(f, b, xz.WriterConfig{}), uint64(len(b)), uint8(2))
	}
	f.Add(zstdWindow512M, uint64(1), uint8(1))
	f.Fuzz(func(t *testing.T, packed []byte, size uint64, form uint8) {
		s := testSection{name: ".debug_str", typ: elf.SHT_PROGBITS}
		switch form % 4 {
		case 0, 1:
			s.flags = elf.SHF_COMPRESSED
			s.data = append(chdr(elf.ELFCLASS64, binary.LittleEndian, uint32(form%4)+1, size), packed...)
		case 2:
			s.name, s.data = ".gnu_debugdata", packed
		case 3:
			s.name = ".zdebug_str"
			s.data = append(binary.BigEndian.AppendUint64([]byte("ZLIB"), size), packed...)
		}
		o, err := New("fuzz", testFile{sections: []testSection{s}}.bytes())
		if err != nil {
			t.Fatal(err)
		}
		if form%4 == 2 {
			o.MiniDebug()
			return
		}
		b, err := o.Section(".debug_str").Data()
		if err == nil && uint64(len(b)) != size {
			t.Errorf("%d bytes, expected %d", len(b), size)
		}
	})
}

// FuzzRelocate applies any bytes as relocations.
func FuzzRelocate(f *testing.F) {
	for i, form := range forms {
		for _, rel := range []elf.SectionType{elf.SHT_RELA, elf.SHT_REL} {
			var b []byte
			for typ := range uint32(8) {
				b = append(b, relocation(form.class, form.order, rel, uint64(typ), uint64(typ), typ, 5)...)
			}
			f.Add(b, uint8(i), rel == elf.SHT_RELA)
		}
	}
	f.Fuzz(func(t *testing.T, relocations []byte, form uint8, addend bool) {
		rel := elf.SHT_REL
		if addend {
			rel = elf.SHT_RELA
		}
		at := forms[int(form)%len(forms)]
		o, err := New("fuzz", relocatableFile(at.class, at.order, rel, relocations))
		if err != nil {
			t.Fatal(err)
		}
		o.SetRelocations(testRelocations)
		if b, err := o.Section(".debug_info").Data(); err == nil && len(b) != 16 {
			t.Errorf("%d bytes", len(b))
		}
	})
}
