// SPDX-License-Identifier: Apache-2.0

package cfi

import "testing"

const benchFile = "/lib/x86_64-linux-gnu/libc.so.6"

// benchTable is the table of libc with PCs in the middle of its functions.
func benchTable(b *testing.B) (*Table, []uint64) {
	b.Helper()
	table, _ := elfTable(b, benchFile, ".eh_frame")
	var pcs []uint64
	for f, err := range table.FDEs() {
		if err != nil {
			b.Fatal(err)
		}
		pcs = append(pcs, f.Start+(f.End-f.Start)/2)
	}
	return table, pcs
}

// BenchmarkIndex builds the index of libc; ns/FDE is the figure.
func BenchmarkIndex(b *testing.B) {
	table, pcs := benchTable(b)
	b.ReportAllocs()
	for b.Loop() {
		fresh, err := NewTable(table.section)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := fresh.FDE(pcs[0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pcs)), "ns/FDE")
}

// BenchmarkRows streams all rows of libc.
func BenchmarkRows(b *testing.B) {
	table, pcs := benchTable(b)
	var fdes []*FDE
	for _, pc := range pcs {
		f, err := table.FDE(pc)
		if err != nil {
			b.Fatal(err)
		}
		fdes = append(fdes, f)
	}
	rows := 0
	b.ReportAllocs()
	for b.Loop() {
		rows = 0
		for _, f := range fdes {
			if err := f.Rows(func(*Row) bool { rows++; return true }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

// BenchmarkRowAt finds FDE and row of a PC by the index.
func BenchmarkRowAt(b *testing.B) {
	table, pcs := benchTable(b)
	benchRowAt(b, table, pcs)
}

// BenchmarkRowAtByHeader does the same by .eh_frame_hdr.
func BenchmarkRowAtByHeader(b *testing.B) {
	table, pcs := benchTable(b)
	_, f := elfTable(b, benchFile, ".eh_frame")
	s := f.Section(".eh_frame_hdr")
	data, err := s.Data()
	if err != nil {
		b.Fatal(err)
	}
	if err := table.UseHeader(Section{Name: s.Name, Data: data, Address: s.Addr}); err != nil {
		b.Fatal(err)
	}
	benchRowAt(b, table, pcs)
}

func benchRowAt(b *testing.B, table *Table, pcs []uint64) {
	var row Row
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 1009) % len(pcs)
		f, err := table.FDE(pcs[i])
		if err != nil {
			b.Fatal(err)
		}
		if err := f.RowAt(pcs[i], &row); err != nil {
			b.Fatal(err)
		}
	}
}
