// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
)

// BenchmarkOpenAndBuildID opens a file of 1 GiB: what is read does not depend on its size.
func BenchmarkOpenAndBuildID(b *testing.B) {
	path, _ := bigFile(b)
	b.ReportAllocs()
	for b.Loop() {
		o, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if len(o.BuildID()) == 0 {
			b.Fatal("no build ID")
		}
		o.Close()
	}
}

func BenchmarkSymbols(b *testing.B) {
	const n = 100000
	names, table := []byte{0}, make([]byte, 24)
	for i := range n {
		entry := make([]byte, 24)
		binary.LittleEndian.PutUint32(entry, uint32(len(names)))
		entry[4], entry[6] = 2, 1
		table = append(table, entry...)
		names = fmt.Appendf(names, "_ZN7project9componentIiE8functionEi%d\x00", i)
	}
	o := mustNew(b, testFile{sections: []testSection{
		{name: ".symtab", typ: elf.SHT_SYMTAB, link: 2, data: table},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: names},
	}}.bytes())
	b.ReportAllocs()
	for b.Loop() {
		if list, err := o.Symbols(); err != nil || len(list) != n {
			b.Fatal(len(list), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/symbol")
}

func BenchmarkReadAddress(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	o := mustOpen(b, self)
	buf := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.ReadAddress(buf, o.Entry()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := Guard(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecompress(b *testing.B) {
	plain := text(16 << 20)
	for _, form := range []struct {
		name   string
		kind   uint32
		packed []byte
	}{{"zlib", compressZLIB, packZLIB(plain)}, {"zstd", compressZSTD, packZSTD(plain)}} {
		b.Run(form.name, func(b *testing.B) {
			file := compressedFile(form.kind, form.packed, uint64(len(plain)))
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				o, err := New("bench", file)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := o.Section(".debug_str").Data(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
