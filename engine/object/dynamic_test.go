// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"testing"
)

// dynamicFile is a file without section headers whose two symbols (the null
// one and "a") are found by a hash table.
func dynamicFile(tag elf.DynTag, hash []byte) []byte {
	f := testFile{programs: []Program{{Type: elf.PT_LOAD, Address: 0x1000}, {Type: elf.PT_DYNAMIC}}}
	start := uint64(len(f.bytes()))
	order := binary.LittleEndian
	symbols := append(make([]byte, 24), 1, 0, 0, 0, 0x12, 0, 1, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0)
	names := []byte("\x00a\x00\x00\x00\x00\x00\x00")
	var dynamic []byte
	for _, entry := range [][2]uint64{
		{uint64(elf.DT_SYMTAB), 0x1000}, {uint64(elf.DT_STRTAB), 0x1000 + 48}, {uint64(elf.DT_STRSZ), 3},
		{uint64(elf.DT_SYMENT), 24}, {uint64(tag), 0x1000 + 56}, {0, 0},
	} {
		dynamic = order.AppendUint64(order.AppendUint64(dynamic, entry[0]), entry[1])
	}
	body := append(append(append([]byte(nil), symbols...), names...), hash...)
	f.programs[0].Offset, f.programs[0].FileSize, f.programs[0].MemSize = start, uint64(len(body)), uint64(len(body))
	f.programs[1].Offset, f.programs[1].FileSize = start+uint64(len(body)), uint64(len(dynamic))
	return append(append(f.bytes(), body...), dynamic...)
}

func gnuHash(buckets, first, bloom uint32, table, chain []uint32) []byte {
	var b []byte
	for _, v := range append([]uint32{buckets, first, bloom, 0}, append(table, chain...)...) {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func TestDynamicSymbolsAreCountedByTheirHashTable(t *testing.T) {
	le32 := func(v ...uint32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	tests := []struct {
		name    string
		tag     elf.DynTag
		hash    []byte
		symbols int
		says    string // "": no error
	}{
		{"DT_HASH", elf.DT_HASH, le32(1, 2), 1, ""},
		{"DT_HASH, one symbol", elf.DT_HASH, le32(1, 1), 0, ""},
		{"DT_HASH, no symbols", elf.DT_HASH, le32(1, 0), 0, ""},
		{"DT_HASH, too many", elf.DT_HASH, le32(1, 0xffffffff), 0, "4294967295 symbols at address 0x1000 are not in the file"},
		{"DT_HASH, cut", elf.DT_HASH, le32(1), 0, "DT_HASH at address 0x1038 is not in the file"},
		{"DT_GNU_HASH", elf.DT_GNU_HASH, gnuHash(1, 1, 0, []uint32{1}, []uint32{3}), 1, ""},
		{"DT_GNU_HASH, nothing hashed", elf.DT_GNU_HASH, gnuHash(1, 1, 0, []uint32{0}, nil), 0, ""},
		{"DT_GNU_HASH, no buckets", elf.DT_GNU_HASH, gnuHash(0, 2, 0, nil, nil), 1, ""},
		{"DT_GNU_HASH, chain without end", elf.DT_GNU_HASH, gnuHash(1, 1, 0, []uint32{1}, []uint32{2, 2}), 0, "the chain of symbol 3 is not in the file"},
		{"DT_GNU_HASH, bucket far away", elf.DT_GNU_HASH, gnuHash(1, 1, 0, []uint32{0xffffffff}, []uint32{3}), 0, "the chain of symbol 4294967295"},
		{"DT_GNU_HASH, too many buckets", elf.DT_GNU_HASH, gnuHash(0xffffffff, 1, 0, nil, nil), 0, "4294967295 buckets"},
		{"DT_GNU_HASH, bloom filter", elf.DT_GNU_HASH, gnuHash(1, 1, 0xffffffff, nil, nil), 0, "1 buckets are not"},
		{"DT_GNU_HASH, cut", elf.DT_GNU_HASH, le32(1, 1, 0), 0, "DT_GNU_HASH at address 0x1038 is not in the file"},
		{"none", elf.DT_DEBUG, nil, 0, "expected DT_HASH or DT_GNU_HASH"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			symbols, err := mustNew(t, dynamicFile(test.tag, test.hash)).Symbols()
			if len(symbols) != test.symbols || (test.symbols == 1 && (symbols[0].Name != "a" || symbols[0].Address != 0x40)) {
				t.Errorf("symbols %v, expected %d", symbols, test.symbols)
			}
			if test.says != "" {
				wantError(t, err, nil, test.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadSymbolTablesGiveWhatCanBeRead(t *testing.T) {
	symbol := func(name uint32) []byte {
		b := make([]byte, 24)
		binary.LittleEndian.PutUint32(b, name)
		b[6] = 1
		return b
	}
	table := append(append(symbol(0), symbol(1)...), symbol(99)...)
	tests := []struct {
		name     string
		sections []testSection
		symbols  int
		says     string
	}{
		{"a name outside", []testSection{{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: table}, {typ: elf.SHT_STRTAB, data: []byte("\x00a\x00")}}, 1,
			"section .symtab (1): names of 1 symbols (the first is symbol 2) are not in the 3 bytes"},
		{"no string table", []testSection{{name: ".symtab", typ: elf.SHT_SYMTAB, link: 9, data: table}}, 0, "string table is section 9 of 3"},
		{"string table outside", []testSection{{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: table}, {typ: elf.SHT_STRTAB, offset: 1 << 40, size: 5}}, 0, "is not in the"},
		{"entry size", []testSection{{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: table, entrySize: 16}, {typ: elf.SHT_STRTAB, data: []byte("\x00a\x00")}}, 0, "entries of 16 bytes, expected 24"},
		{"cut entry", []testSection{{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: table[:60]}, {typ: elf.SHT_STRTAB, data: []byte("\x00a\x00")}}, 1, "60 bytes, expected a multiple of 24"},
		{"no bytes", []testSection{{name: ".symtab", typ: elf.SHT_NOBITS, size: 48}}, 0, ""},
		{"one bad, one good", []testSection{
			{name: ".symtab", typ: elf.SHT_SYMTAB, link: 9, data: table},
			{name: ".dynsym", typ: elf.SHT_DYNSYM, link: 3, data: table[:48]},
			{typ: elf.SHT_STRTAB, data: []byte("\x00a\x00")}}, 1, "section .symtab (1)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			symbols, err := mustNew(t, testFile{sections: test.sections}.bytes()).Symbols()
			if len(symbols) != test.symbols {
				t.Errorf("symbols %v, expected %d", symbols, test.symbols)
			}
			if test.says != "" {
				wantError(t, err, nil, test.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGlobalOffsetTableIsThatOfTheDynamicLinker(t *testing.T) {
	pltgot := dynamicFile(elf.DT_PLTGOT, []byte{1, 2, 3, 4})
	o := mustNew(t, pltgot)
	tags, err := o.dynamicTags()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := o.GlobalOffsetTable(); !ok || got != tags[elf.DT_PLTGOT] || got == 0 {
		t.Errorf("%#x, %v, expected DT_PLTGOT, %#x", got, ok, tags[elf.DT_PLTGOT])
	}
	sections := testFile{sections: []testSection{
		{name: ".got", typ: elf.SHT_PROGBITS, address: 0x3000, data: []byte{1}},
		{name: ".got.plt", typ: elf.SHT_PROGBITS, address: 0x4000, data: []byte{1}},
	}}
	if got, ok := mustNew(t, sections.bytes()).GlobalOffsetTable(); !ok || got != 0x4000 {
		t.Errorf("%#x, %v, expected that of .got.plt", got, ok)
	}
	sections.sections = sections.sections[:1]
	if got, ok := mustNew(t, sections.bytes()).GlobalOffsetTable(); !ok || got != 0x3000 {
		t.Errorf("%#x, %v, expected that of .got", got, ok)
	}
	if got, ok := mustNew(t, testFile{}.bytes()).GlobalOffsetTable(); ok {
		t.Errorf("%#x of a file that has none", got)
	}
}
