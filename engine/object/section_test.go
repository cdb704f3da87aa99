// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk/reloc"
)

// chdr is a compression header.
func chdr(class elf.Class, order byteOrder, kind uint32, size uint64) []byte {
	f := testFile{class: class, order: order}
	r := record{f: &f}
	r.u32(kind)
	if class == elf.ELFCLASS64 {
		r.u32(0)
	}
	r.word(size)
	r.word(1)
	return r.b
}

func packZLIB(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func packZSTD(b []byte, options ...zstd.EOption) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, options...)
	if err != nil {
		panic(err)
	}
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// zstdWindow512M is a frame of one stored byte that asks for a window of 512 MiB.
var zstdWindow512M = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x09, 0x00, 0x00, 'x'}

// text is compressible, but not all of one byte.
func text(n int) []byte {
	r := rand.New(rand.NewSource(1))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = fmt.Appendf(b, "entry %d; ", r.Intn(5000))
	}
	return b[:n]
}

func TestCompressedSectionsAreUnpacked(t *testing.T) {
	plain := text(700 << 10)
	encoder, _ := zstd.NewWriter(nil)
	oneShot := encoder.EncodeAll(plain, nil)
	parts := append(encoder.EncodeAll(plain[:300<<10], nil), encoder.EncodeAll(plain[300<<10:], nil)...)
	random := make([]byte, 200<<10)
	rand.New(rand.NewSource(2)).Read(random)
	tests := []struct {
		name   string
		kind   uint32
		packed []byte
		plain  []byte
	}{
		{"zlib", compressZLIB, packZLIB(plain), plain},
		{"zlib of nothing", compressZLIB, packZLIB(nil), nil},
		{"zlib of zeros", compressZLIB, packZLIB(make([]byte, 4<<20)), make([]byte, 4<<20)},
		{"zlib of random bytes", compressZLIB, packZLIB(random), random},
		{"zstd in one piece", compressZSTD, oneShot, plain},
		{"zstd as a stream", compressZSTD, packZSTD(plain), plain},
		{"zstd in two frames", compressZSTD, parts, plain},
		{"zstd with a window of 8 MiB", compressZSTD, packZSTD(plain, zstd.WithWindowSize(8<<20)), plain},
		{"zstd of nothing", compressZSTD, packZSTD(nil, zstd.WithZeroFrames(true)), nil},
		{"zstd of random bytes", compressZSTD, packZSTD(random), random},
		{"zstd of zeros", compressZSTD, packZSTD(make([]byte, 4<<20)), make([]byte, 4<<20)},
	}
	for _, test := range tests {
		for _, form := range forms {
			t.Run(test.name+", "+form.name, func(t *testing.T) {
				o := mustNew(t, testFile{class: form.class, order: form.order, sections: []testSection{{
					name: ".debug_str", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED,
					data: append(chdr(form.class, form.order, test.kind, uint64(len(test.plain))), test.packed...),
				}}}.bytes())
				got, err := o.Section(".debug_str").Data()
				if err != nil || !bytes.Equal(got, test.plain) {
					t.Fatalf("%d bytes, %v, expected %d", len(got), err, len(test.plain))
				}
				if again, _ := o.Section(".debug_str").Data(); len(got) > 0 && &again[0] != &got[0] {
					t.Error("unpacked a second time")
				}
			})
		}
	}
}

func TestOldCompressedSectionsAreFoundAndUnpacked(t *testing.T) {
	plain := text(100000)
	data := append(binary.BigEndian.AppendUint64([]byte("ZLIB"), uint64(len(plain))), packZLIB(plain)...)
	o := mustNew(t, testFile{sections: []testSection{{name: ".zdebug_info", typ: elf.SHT_PROGBITS, data: data}}}.bytes())
	s := o.Section(".debug_info")
	if s == nil || s != o.Section(".zdebug_info") {
		t.Fatal("not found")
	}
	if got, err := s.Data(); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestBadCompressionIsAnError(t *testing.T) {
	plain := text(100000)
	packed := packZLIB(plain)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-1] ^= 1
	flippedZSTD := packZSTD(plain)
	flippedZSTD[len(flippedZSTD)-1] ^= 1
	header := func(kind uint32, size uint64) []byte {
		return chdr(elf.ELFCLASS64, binary.LittleEndian, kind, size)
	}
	tests := []struct {
		name string
		data []byte
		gnu  bool
		is   error
		says string
	}{
		{name: "header cut", data: header(1, 5)[:23], says: "compression header cut: 23 bytes, expected 24"},
		{name: "unknown type", data: append(header(3, 5), packed...), says: "compression type 3, expected 1 (zlib) or 2 (zstd)"},
		{name: "no stream", data: append(header(1, 5), "garbage"...), says: "decompressing: "},
		{name: "no zstd stream", data: append(header(2, 5), "garbage"...), says: "decompressing: "},
		{name: "stream cut", data: append(header(1, 100000), packed[:len(packed)/2]...), says: "decompressing: unexpected EOF"},
		{name: "checksum", data: append(header(1, 100000), flipped...), says: "checksum"},
		{name: "checksum, zstd", data: append(header(2, 100000), flippedZSTD...), says: "decompressing: "},
		{name: "bytes after the frame, zstd", data: append(append(header(2, 100000), packZSTD(plain)...), "garbage"...), says: "decompressing: "},
		{name: "more than said", data: append(header(1, 99999), packed...), says: "more than the 99999 bytes"},
		{name: "less than said", data: append(header(1, 100001), packed...), says: "decompressed to 100000 bytes, expected 100001"},
		{name: "less than said, zstd", data: append(header(2, 100001), packZSTD(plain)...), says: "decompressed to 100000 bytes, expected 100001"},
		{name: "more than said, zstd", data: append(header(2, 99999), packZSTD(plain)...), says: "more than the 99999 bytes"},
		{name: "all memory", data: append(header(1, 1<<62), packed...), is: ErrTooLarge, says: "unpacked data is too large"},
		{name: "more than all memory", data: append(header(2, 1<<63+5), packed...), is: ErrTooLarge, says: "unpacked data is too large"},
		{name: "zstd window", data: append(header(2, 100000), zstdWindow512M...), says: "window size exceeded"},
		{name: "GNU header", data: append([]byte("ZLIC\x00\x00\x00\x00\x00\x00\x00\x05"), packed...), gnu: true, says: `expected "ZLIB"`},
		{name: "GNU header cut", data: []byte("ZLIB\x00"), gnu: true, says: `expected "ZLIB"`},
		{name: "GNU size", data: append([]byte("ZLIB\xff\x00\x00\x00\x00\x00\x00\x05"), packed...), gnu: true, is: ErrTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := testSection{name: ".debug_str", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: test.data}
			if test.gnu {
				s.name, s.flags = ".zdebug_str", 0
			}
			o := mustNew(t, testFile{sections: []testSection{s}}.bytes())
			b, err := o.Section(".debug_str").Data()
			wantError(t, err, test.is, test.says)
			wantError(t, err, nil, "section "+s.name+" (1): offset 0x40: ")
			if b != nil {
				t.Error("there are bytes beside the error")
			}
		})
	}
}

func TestWhatAFileUnpacksToIsBoundedAsAWhole(t *testing.T) {
	var sections []testSection
	data := append(chdr(elf.ELFCLASS64, binary.LittleEndian, compressZSTD, 16<<20), packZSTD(make([]byte, 16<<20))...)
	for range 10 {
		sections = append(sections, testSection{name: ".debug_str", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: data})
	}
	o := mustNew(t, testFile{sections: sections}.bytes())
	var good, bad int
	for _, s := range o.Sections()[1:11] {
		if _, err := s.Data(); errors.Is(err, ErrTooLarge) {
			bad++
		} else if err == nil {
			good++
		}
	}
	if good < 3 || bad < 3 || good+bad != 10 {
		t.Errorf("%d unpacked and %d refused", good, bad)
	}
}

func TestSectionsOutsideTheFileAreErrors(t *testing.T) {
	for _, test := range []struct{ offset, size uint64 }{{1 << 40, 1}, {1, 1 << 40}, {^uint64(0), ^uint64(0)}, {64, ^uint64(0) - 63}} {
		o := mustNew(t, testFile{sections: []testSection{{name: ".text", typ: elf.SHT_PROGBITS, offset: test.offset, size: test.size}}}.bytes())
		_, err := o.Section(".text").Data()
		wantError(t, err, nil, fmt.Sprintf("test: section .text (1): offset %#x, size %#x is not in the", test.offset, test.size))
	}
}

// TestRelocatedSectionsAreThoseOfReadelf compares with `readelf --relocated-dump`.
func TestRelocatedSectionsAreThoseOfReadelf(t *testing.T) {
	onX86(t)
	oracle.Tools(t, "readelf")
	plain := compile(t, "-c")
	for _, format := range []string{"none", "zlib", "zlib-gnu", "zstd"} {
		t.Run(format, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.o")
			if out, err := exec.Command("objcopy", "--compress-debug-sections="+format, plain, path).CombinedOutput(); err != nil {
				oracle.Missing(t, "objcopy does not know %s: %s", format, out)
			}
			o := mustOpen(t, path)
			o.SetRelocations(x86Relocations)
			n := 0
			for _, s := range o.Sections() {
				name := strings.Replace(s.Name, ".zdebug_", ".debug_", 1)
				if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_EXECINSTR != 0 || s.Size == 0 {
					continue
				}
				got, err := s.Data()
				if err != nil {
					t.Error(err)
					continue
				}
				if want := dumped(t, oracle.Run(t, "readelf", "-z", "-R", s.Name, path)); !bytes.Equal(got, want) {
					t.Errorf("%s differs:\n% x\nexpected\n% x", name, got, want)
				}
				n++
			}
			if n < 8 {
				t.Errorf("%d sections compared", n)
			}
		})
	}
}

// dumped reads the bytes out of a hex dump of readelf.
func dumped(t *testing.T, out string) (b []byte) {
	for _, line := range strings.Split(out, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "0x") || len(line) < 13 {
			continue
		}
		// "  0x00000000 01234567 89abcdef ...... text": 35 columns of digits
		digits := strings.ReplaceAll(line[13:min(len(line), 13+35)], " ", "")
		for i := 0; i+2 <= len(digits); i += 2 {
			var v byte
			if _, err := fmt.Sscanf(digits[i:i+2], "%02x", &v); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			b = append(b, v)
		}
	}
	return b
}

// relocatableFile is an object with a symbol table and relocations of section
// .debug_info (1), which is 16 bytes of 0x10.
func relocatableFile(class elf.Class, order byteOrder, rel elf.SectionType, relocations []byte) []byte {
	f := testFile{class: class, order: order}
	symbols := record{f: &f}
	symbol := func(shndx uint16, value uint64) {
		symbols.u32(0)
		if class == elf.ELFCLASS64 {
			symbols.b = append(symbols.b, 0, 0)
			symbols.u16(shndx)
			symbols.word(value)
			symbols.word(0)
		} else {
			symbols.word(value)
			symbols.word(0)
			symbols.b = append(symbols.b, 0, 0)
			symbols.u16(shndx)
		}
	}
	symbol(0, 0)
	symbol(1, 0x20)                      // 1: in .debug_info
	symbol(uint16(elf.SHN_UNDEF), 0x999) // 2
	symbol(uint16(elf.SHN_ABS), 0x30)    // 3
	symbol(uint16(elf.SHN_COMMON), 0x8)  // 4
	symbol(77, 0)                        // 5: in no section
	symbol(uint16(elf.SHN_XINDEX), 0x40) // 6: by the extended index, in .debug_info
	index := record{f: &f}
	for _, v := range []uint32{0, 0, 0, 0, 0, 0, 1} {
		index.u32(v)
	}
	return testFile{class: class, order: order, typ: elf.ET_REL, sections: []testSection{
		{name: ".debug_info", typ: elf.SHT_PROGBITS, address: 0x1000, data: bytes.Repeat([]byte{0x10}, 16)},
		{name: ".rel", typ: rel, data: relocations, link: 3, info: 1},
		{name: ".symtab", typ: elf.SHT_SYMTAB, data: symbols.b, link: 4},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: []byte{0}},
		{name: ".symtab_shndx", typ: elf.SHT_SYMTAB_SHNDX, data: index.b, link: 3},
	}}.bytes()
}

// relocation makes an entry; an addend only for SHT_RELA.
func relocation(class elf.Class, order byteOrder, rel elf.SectionType, offset, symbol uint64, typ uint32, addend int64) []byte {
	f := testFile{class: class, order: order}
	r := record{f: &f}
	r.word(offset)
	if class == elf.ELFCLASS64 {
		r.word(symbol<<32 | uint64(typ))
	} else {
		r.word(symbol<<8 | uint64(typ))
	}
	if rel == elf.SHT_RELA {
		r.word(uint64(addend))
	}
	return r.b
}

var testRelocations = []reloc.Entry{
	{Type: 0, Kind: reloc.None},
	{Type: 1, Size: 4, Kind: reloc.Absolute},
	{Type: 2, Size: 4, Kind: reloc.Relative},
	{Type: 3, Size: 2, Kind: reloc.Absolute},
	{Type: 4, Size: 1, Kind: reloc.Absolute},
	{Type: 5, Size: 8, Kind: reloc.Absolute},
	{Type: 6, Size: 3, Kind: reloc.Absolute},
	{Type: 7, Size: 4, Kind: 9},
	{Type: 8, Size: 1, Kind: reloc.Set},
	{Type: 9, Size: 2, Kind: reloc.Add},
	{Type: 10, Size: 2, Kind: reloc.Subtract},
	{Type: 11, Size: 1, Kind: reloc.Subtract},
	{Type: 12, Size: 1, Kind: reloc.Set, Field: reloc.Low6},
	{Type: 13, Size: 1, Kind: reloc.Subtract, Field: reloc.Low6},
	{Type: 14, Kind: reloc.Set, Field: reloc.ULEB128},
	{Type: 15, Kind: reloc.Subtract, Field: reloc.ULEB128},
	{Type: 16, Kind: reloc.Add, Field: reloc.ULEB128},
}

// Symbol 1 is 0x1020, symbol 3 is 0x30: how linkers that shorten code are told
// the distance between two symbols (RISC-V psABI, "Relocations"; LoongArch ABI,
// "Relocations"). The bytes are 0x10, or what is given.
func TestRelocationsOfOnePlaceAddUp(t *testing.T) {
	type entry struct {
		place, symbol uint64
		typ           uint32
		addend        int64
	}
	tests := []struct {
		name   string
		before []byte
		list   []entry
		want   []byte // little-endian
	}{
		{"set, subtract", nil, []entry{{0, 1, 8, 0}, {0, 1, 11, -7}}, []byte{7, 0x10}},
		{"add, subtract", []byte{0, 0}, []entry{{0, 1, 9, 4}, {0, 3, 10, 0}}, []byte{0xf4, 0x0f, 0x10}},
		{"add to what is there", []byte{1, 0}, []entry{{0, 3, 9, 0}}, []byte{0x31, 0, 0x10}},
		{"more than the field holds, between", []byte{0, 0}, []entry{{0, 3, 9, 1 << 40}, {0, 3, 10, 1<<40 - 2}}, []byte{2, 0, 0x10}},
		{"six bits", []byte{0x40, 0xff}, []entry{{0, 1, 12, 0x2a}, {0, 1, 13, 0}, {1, 3, 12, 0}, {1, 3, 13, 1}}, []byte{0x6a, 0xff}},
		{"LEB128 of one byte", []byte{0x7f, 0x80}, []entry{{0, 1, 14, 5}, {0, 1, 15, 0}}, []byte{5, 0x80}},
		{"LEB128, padded", []byte{0x80, 0x80, 0}, []entry{{0, 1, 14, 0}, {0, 3, 15, 0}}, []byte{0xf0, 0x9f, 0, 0x10}},
		{"LEB128 added to", []byte{0x83, 0x01}, []entry{{0, 1, 16, 0}, {0, 3, 15, 0}}, []byte{0xf3, 0x20, 0x10}},
		{"LEB128 of ten bytes", bytes.Repeat([]byte{0xff}, 9), []entry{{0, 1, 14, 0}, {0, 1, 15, 1}},
			append(bytes.Repeat([]byte{0xff}, 9), 0x01)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var relocations []byte
			for _, e := range test.list {
				relocations = append(relocations, relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, e.place, e.symbol, e.typ, e.addend)...)
			}
			b := relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, relocations)
			at := bytes.Index(b, bytes.Repeat([]byte{0x10}, 16))
			copy(b[at:], test.before)
			o := mustNew(t, b)
			o.SetRelocations(testRelocations)
			got, err := o.Section(".debug_info").Data()
			if err != nil || !bytes.Equal(got[:len(test.want)], test.want) {
				t.Errorf("% x, %v, expected % x", got, err, test.want)
			}
		})
	}
}

func TestLEB128NumbersThatDoNotEndAreNotRelocated(t *testing.T) {
	for _, place := range []uint64{4, 15, 16, ^uint64(0)} {
		b := relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA,
			relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, place, 1, 14, 0))
		copy(b[bytes.Index(b, bytes.Repeat([]byte{0x10}, 16)):], bytes.Repeat([]byte{0x80}, 16))
		o := mustNew(t, b)
		o.SetRelocations(testRelocations)
		_, err := o.Section(".debug_info").Data()
		wantError(t, err, nil, "no LEB128 number of at most 10 bytes in the 16 bytes of the section")
	}
}

// The distance between two places of section 1 is no address of it, unlike the
// distance from a place of the section itself to another section.
func TestReferencesAreOfAddressesOnly(t *testing.T) {
	var relocations []byte
	for _, e := range []struct {
		place, symbol uint64
		typ           uint32
	}{{0, 1, 9}, {0, 6, 10}, {2, 1, 9}, {2, 3, 10}, {4, 1, 8}} {
		relocations = append(relocations, relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, e.place, e.symbol, e.typ, 0)...)
	}
	o := mustNew(t, relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, relocations))
	o.SetRelocations(testRelocations)
	got, err := o.Section(".debug_info").References()
	if diff := cmp.Diff([]Reference{{2, 1}, {4, 1}}, got); diff != "" || err != nil {
		t.Errorf("%v, references (-want +got):\n%s", err, diff)
	}
}

func TestRelocationsAreAppliedInEveryClassAndOrder(t *testing.T) {
	tests := []struct {
		name   string
		symbol uint64
		typ    uint32
		size   int
		addend int64 // of SHT_RELA
		rela   uint64
		rel    uint64 // with what is in the place as the addend
	}{
		{"none", 1, 0, 4, 5, 0x10101010, 0x10101010},
		{"absolute", 1, 1, 4, 5, 0x1025, 0x1020 + 0x10101010},
		{"negative addend", 1, 1, 4, -0x20, 0x1000, 0x1020 + 0x10101010},
		{"relative", 1, 2, 4, 0x10, 0x1030 - 0x1004, 0x1020 + 0x10101010 - 0x1004},
		{"no symbol", 0, 1, 4, 0x77, 0x77, 0x10101010},
		{"undefined", 2, 1, 4, 0x77, 0x77, 0x10101010},
		{"common", 4, 1, 4, 0x77, 0x77, 0x10101010},
		{"SHN_ABS", 3, 1, 4, 0x77, 0xa7, 0x30 + 0x10101010},
		{"SHN_XINDEX", 6, 1, 4, 0, 0x1040, 0x1040 + 0x10101010},
		{"two bytes", 3, 3, 2, 2, 0x32, 0x30 + 0x1010},
		{"one byte", 3, 4, 1, -0x31, 0xff, 0x40},
		{"eight bytes", 3, 5, 8, -0x31, ^uint64(0), 0x30 + 0x1010101010101010},
	}
	for _, test := range tests {
		for _, form := range forms {
			for _, rel := range []elf.SectionType{elf.SHT_RELA, elf.SHT_REL} {
				t.Run(fmt.Sprintf("%s, %s, %v", test.name, form.name, rel), func(t *testing.T) {
					o := mustNew(t, relocatableFile(form.class, form.order, rel, relocation(form.class, form.order, rel, 4, test.symbol, test.typ, test.addend)))
					o.SetRelocations(testRelocations)
					got, err := o.Section(".debug_info").Data()
					if err != nil {
						t.Fatal(err)
					}
					value := test.rela
					if rel == elf.SHT_REL {
						value = test.rel
					}
					want := bytes.Repeat([]byte{0x10}, 16)
					place := form.order.AppendUint64(nil, value)
					if form.order == byteOrder(binary.BigEndian) {
						place = place[8-test.size:]
					}
					copy(want[4:4+test.size], place)
					if !bytes.Equal(got, want) {
						t.Errorf("% x\nexpected\n% x", got, want)
					}
					if raw, _ := o.Section(".debug_info").raw(); raw[4] != 0x10 {
						t.Error("the file's bytes were changed")
					}
				})
			}
		}
	}
}

func TestBadRelocationsAreErrors(t *testing.T) {
	one := func(offset, symbol uint64, typ uint32, addend int64) []byte {
		return relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, offset, symbol, typ, addend)
	}
	tests := []struct {
		name        string
		relocations []byte
		says        string
	}{
		{"type", one(0, 1, 99, 0), "relocation type 99 of machine 62 is not known"},
		{"place", one(13, 1, 1, 0), "place 0xd is not in the 16 bytes of the section"},
		{"place past all", one(^uint64(0), 1, 1, 0), "is not in the 16 bytes"},
		{"symbol", one(0, 7, 1, 0), "symbol 7 of 7"},
		{"symbol past all", one(0, 1<<32-1, 1, 0), "symbol 4294967295 of 7"},
		{"section of the symbol", one(0, 5, 1, 0), "symbol 5 is in section 77 of 7"},
		{"size", one(0, 1, 6, 0), "size 3, expected 1, 2, 4 or 8"},
		{"kind", one(0, 1, 7, 0), "kind 9 is not known"},
		{"value", one(0, 1, 1, 1<<40), "does not fit 4 bytes"},
		{"cut", one(0, 1, 1, 0)[:23], "23 bytes, expected a multiple of 24"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := mustNew(t, relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, test.relocations))
			o.SetRelocations(testRelocations)
			_, err := o.Section(".debug_info").Data()
			wantError(t, err, nil, test.says)
			wantError(t, err, nil, "section .debug_info (1): relocations of section .rel (2): ")
		})
	}
}

func TestNewRelocationsAreUsedByWhatWasReadBefore(t *testing.T) {
	b := relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, 0, 1, 99, 0))
	o := mustNew(t, b)
	_, err := o.Section(".debug_info").Data()
	wantError(t, err, nil, "relocation type 99 of machine 62 is not known")
	o.SetRelocations([]reloc.Entry{{Type: 99, Size: 4, Kind: reloc.Absolute}})
	if got, err := o.Section(".debug_info").Data(); err != nil || got[0] != 0x20 || got[1] != 0x10 {
		t.Errorf("% x, %v", got, err)
	}
}

func TestManyRelocationSectionsOfTheSameBytesAreReadOnce(t *testing.T) {
	relocations := bytes.Repeat(relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, 0, 0, 1, 0), 1000)
	sections := []testSection{{name: ".debug_info", typ: elf.SHT_PROGBITS, data: make([]byte, 16)}}
	for i := range 1000 {
		s := testSection{name: ".rela", typ: elf.SHT_RELA, info: 1, size: uint64(len(relocations)), offset: 80}
		if i == 0 {
			s.data = relocations
		}
		sections = append(sections, s)
	}
	o := mustNew(t, testFile{typ: elf.ET_REL, sections: sections}.bytes())
	o.SetRelocations(testRelocations)
	if _, err := o.Section(".debug_info").Data(); err != nil {
		t.Error(err)
	}
	if p := o.Problems(); len(p) != 1 || !strings.Contains(p[0], "and 998 more are not read") {
		t.Errorf("problems %q", p)
	}
}

func TestReferencesSayTheSectionOfWhatIsRelocated(t *testing.T) {
	for _, form := range forms {
		for _, rel := range []elf.SectionType{elf.SHT_RELA, elf.SHT_REL} {
			var relocations []byte
			for _, r := range [][3]uint64{ // offset, symbol, type
				{12, 1, 1}, {4, 6, 2}, {0, 2, 1}, {8, 3, 1}, {2, 0, 1}, {12, 3, 1}, {14, 1, 0},
			} {
				relocations = append(relocations, relocation(form.class, form.order, rel, r[0], r[1], uint32(r[2]), 5)...)
			}
			o := mustNew(t, relocatableFile(form.class, form.order, rel, relocations))
			o.SetRelocations(testRelocations)
			got, err := o.Section(".debug_info").References()
			// Symbols 1 and 6 are in section 1; type 0 changes nothing.
			if diff := cmp.Diff([]Reference{{4, 1}, {12, 1}}, got); diff != "" || err != nil {
				t.Errorf("%s, %v: %v, references (-want +got):\n%s", form.name, rel, err, diff)
			}
			if got, err := o.Section(".symtab").References(); len(got) != 0 || err != nil {
				t.Errorf("%s, %v: of the symbol table: %v, %v", form.name, rel, got, err)
			}
		}
	}
	bad := relocatableFile(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA,
		relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, 0, 7, 1, 0))
	_, err := mustNew(t, bad).Section(".debug_info").References()
	wantError(t, err, nil, "section .debug_info (1): relocations of section .rel (2): offset")
	wantError(t, err, nil, "symbol 7 of 7")
}

// Intel's compilers write section symbols so.
func TestReferencesOfSymbolsThatNameASectionOfCodeAreToIt(t *testing.T) {
	names := []byte("\x00.text.k\x00.text.twice\x00.debug_frame\x00cut")
	f := testFile{class: elf.ELFCLASS64, order: binary.LittleEndian}
	symbols := record{f: &f, b: make([]byte, 24)}
	for _, s := range []struct{ name, section int }{
		{1, 2},               // 1: .text.k, but in .debug_frame
		{9, 2},               // 2: two sections have the name
		{21, 2},              // 3: is in .debug_frame
		{1, 3},               // 4: in a section of code, whatever its name
		{len(names) - 3, 2},  // 5: name without an end
		{len(names) + 99, 2}, // 6: name outside of the table
	} {
		symbols.u32(uint32(s.name))
		symbols.b = append(symbols.b, 0, 0)
		symbols.u16(uint16(s.section))
		symbols.word(0)
		symbols.word(0)
	}
	var relocations []byte
	for i := range uint64(6) {
		relocations = append(relocations, relocation(elf.ELFCLASS64, binary.LittleEndian, elf.SHT_RELA, 2*i, i+1, 3, 0)...)
	}
	code := elf.SHF_ALLOC | elf.SHF_EXECINSTR
	o := mustNew(t, testFile{typ: elf.ET_REL, sections: []testSection{
		{name: ".text.k", typ: elf.SHT_PROGBITS, flags: code, data: []byte{1}},
		{name: ".debug_frame", typ: elf.SHT_PROGBITS, data: make([]byte, 32)},
		{name: ".text.twice", typ: elf.SHT_PROGBITS, flags: code, data: []byte{1}},
		{name: ".text.twice", typ: elf.SHT_PROGBITS, flags: code, data: []byte{1}},
		{name: ".rela", typ: elf.SHT_RELA, data: relocations, link: 6, info: 2},
		{name: ".symtab", typ: elf.SHT_SYMTAB, data: symbols.b, link: 7},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: names},
	}}.bytes())
	o.SetRelocations(testRelocations)
	got, err := o.Section(".debug_frame").References()
	if diff := cmp.Diff([]Reference{{0, 1}, {2, 2}, {4, 2}, {6, 3}, {8, 2}, {10, 2}}, got); diff != "" || err != nil {
		t.Errorf("%v, references (-want +got):\n%s", err, diff)
	}

	// So do addresses where the object is laid out.
	laid, err := o.LaidOut()
	if err != nil {
		t.Fatal(err)
	}
	laid.SetRelocations(testRelocations)
	b, err := laid.Section(".debug_frame").Data()
	if err != nil {
		t.Fatal(err)
	}
	var bases []uint16
	for i := range 6 {
		bases = append(bases, binary.LittleEndian.Uint16(b[2*i:]))
	}
	if diff := cmp.Diff([]uint16{0x1000, 0, 0, 0x3000, 0, 0}, bases); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if b, err := o.Section(".debug_frame").Data(); err != nil || binary.LittleEndian.Uint16(b) != 0 {
		t.Errorf("the object itself: % x, %v", b, err)
	}
}
