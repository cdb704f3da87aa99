// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"sort"
	"testing"

	delve "github.com/go-delve/delve/pkg/dwarf/frame"

	"github.com/unwindd/unwindd/cfi"
)

// libc is there on every machine that has gcc; other systems have it elsewhere.
var libc = []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"}

// ehFrame returns the .eh_frame of a big file.
func ehFrame(t testing.TB) (data []byte, address uint64) {
	t.Helper()
	paths := libc
	if path := os.Getenv("PEERS_FILE"); path != "" {
		paths = []string{path}
	}
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			continue
		}
		defer f.Close()
		s := f.Section(".eh_frame")
		if s == nil || f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		return data, s.Addr
	}
	t.Skipf("no little-endian 64-bit ELF file with .eh_frame among %v", paths)
	return nil, 0
}

func ourTable(t testing.TB, data []byte, address uint64) *cfi.Table {
	t.Helper()
	table, err := cfi.NewTable(cfi.Section{
		Name: ".eh_frame", Data: data, Address: address, EH: true, Order: binary.LittleEndian, AddressSize: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// delveTable parses the section, and sorts the entries, which delve's lookup
// needs and its Parse leaves to its caller.
func delveTable(t testing.TB, data []byte, address uint64) delve.FrameDescriptionEntries {
	t.Helper()
	fdes, err := delve.Parse(data, binary.LittleEndian, 0, 8, address)
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(fdes, func(i, j int) bool { return fdes[i].Begin() < fdes[j].Begin() })
	return fdes
}

// randomPCs returns addresses in code that has CFI, the same in each run.
func randomPCs(t testing.TB, table *cfi.Table) []uint64 {
	t.Helper()
	var fdes []*cfi.FDE
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if f.End > f.Start {
			fdes = append(fdes, f)
		}
	}
	if len(fdes) == 0 {
		t.Fatal("no FDEs")
	}
	random := rand.New(rand.NewPCG(1, 2))
	pcs := make([]uint64, 1<<14)
	for i := range pcs {
		f := fdes[random.IntN(len(fdes))]
		pcs[i] = f.Start + random.Uint64N(f.End-f.Start)
	}
	return pcs
}

func TestRowsGiveTheSameCFA(t *testing.T) {
	data, address := ehFrame(t)
	ours, theirs := ourTable(t, data, address), delveTable(t, data, address)
	compared := 0
	var row cfi.Row
	for _, pc := range randomPCs(t, ours) {
		f, err := ours.FDE(pc)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.RowAt(pc, &row); err != nil {
			t.Fatal(err)
		}
		d, err := theirs.FDEForPC(pc)
		if err != nil {
			t.Fatal(err)
		}
		if d.Begin() != f.Start || d.End() != f.End {
			t.Fatalf("pc 0x%x: delve's FDE is 0x%x to 0x%x, ours 0x%x to 0x%x", pc, d.Begin(), d.End(), f.Start, f.End)
		}
		context, err := d.EstablishFrame(pc)
		if err != nil {
			t.Fatal(err)
		}
		if row.CFA.Kind != cfi.CFARegister || context.CFA.Rule != delve.RuleCFA {
			continue
		}
		compared++
		if row.CFA.Register != context.CFA.Reg || row.CFA.Offset != context.CFA.Offset {
			t.Errorf("pc 0x%x: %+v, delve: %+v", pc, row.CFA, context.CFA)
		}
	}
	if compared < 10000 {
		t.Errorf("only %d rows compared", compared)
	}
}

// BenchmarkIndex makes all that a first lookup needs.
func BenchmarkIndex(b *testing.B) {
	data, address := ehFrame(b)
	pc := randomPCs(b, ourTable(b, data, address))[0]
	b.Run("delve", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := delveTable(b, data, address).FDEForPC(pc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unwindd", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ourTable(b, data, address).FDE(pc); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRowAt finds the FDE of a random PC and its row.
func BenchmarkRowAt(b *testing.B) {
	data, address := ehFrame(b)
	ours, theirs := ourTable(b, data, address), delveTable(b, data, address)
	pcs := randomPCs(b, ours)
	b.Run("delve", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pc := pcs[i%len(pcs)]
			f, err := theirs.FDEForPC(pc)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.EstablishFrame(pc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unwindd", func(b *testing.B) {
		var row cfi.Row
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pc := pcs[i%len(pcs)]
			f, err := ours.FDE(pc)
			if err != nil {
				b.Fatal(err)
			}
			if err := f.RowAt(pc, &row); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRows executes all instructions of all FDEs, beginning with the bytes
// of the section; ns/row is the figure. delve makes no rows: it executes an FDE
// up to a PC, here its last one.
func BenchmarkRows(b *testing.B) {
	data, address := ehFrame(b)
	rows := 0
	count := func(_ *cfi.FDE, _ *cfi.Row, err error) bool {
		if err != nil {
			b.Fatal(err)
		}
		rows++
		return true
	}
	ourTable(b, data, address).Rows(count)
	all := rows
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(all), "ns/row")
	}
	b.Run("delve", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, f := range delveTable(b, data, address) {
				if _, err := f.EstablishFrame(f.End() - 1); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
	b.Run("unwindd", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ourTable(b, data, address).Rows(count)
		}
		report(b)
	})
}
