// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"os"
	"testing"
)

// largest is a large library: shell32.dll of Wine, or what is there.
func largest(b *testing.B) string {
	const path = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/shell32.dll"
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return libraries(b)[0]
}

// BenchmarkOpen reads headers and the table of functions.
func BenchmarkOpen(b *testing.B) {
	data, err := os.ReadFile(largest(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f, err := New("bench", data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.functions(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRowAt looks up the row of the middle of each function.
func BenchmarkRowAt(b *testing.B) {
	f := open(b, largest(b))
	var pcs []uint64
	if err := f.Functions(func(fn Function) bool {
		pcs = append(pcs, (fn.Start+fn.End)/2)
		return true
	}); err != nil {
		b.Fatal(err)
	}
	var row Row
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := f.RowAt(pcs[i%len(pcs)], &row); err != nil {
			b.Fatal(err)
		}
	}
}
