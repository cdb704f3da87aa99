// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// bodies are the units of a program of C++ with many functions and inlined calls.
func bodies(b *testing.B) (list []*body) {
	b.Helper()
	oracle.Tools(b, "g++")
	_, path := largeSubjects[0].build(b)
	r := openReader(b, path)
	for _, u := range r.main.everyUnit() {
		unit, err := u.open()
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, unit)
	}
	return list
}

// BenchmarkFindFunctions reads all units, in bytes of .debug_info.
func BenchmarkFindFunctions(b *testing.B) {
	list := bodies(b)
	b.ReportAllocs()
	size := uint64(0)
	for _, u := range list {
		size += u.end - u.offset
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		count := 0
		for _, u := range list {
			u.file.kept.Store(0) // else a bound of what one file keeps is reached
			x, err := u.findFunctions(false)
			if err != nil {
				b.Fatal(err)
			}
			count += len(x.list)
		}
		if count < 200 {
			b.Fatalf("%d functions, expected at least 200", count)
		}
	}
}

// BenchmarkFindInlines reads the calls that were inlined into each function.
func BenchmarkFindInlines(b *testing.B) {
	list := bodies(b)
	found := make([]*functions, len(list))
	for i, u := range list {
		var err error
		if found[i], err = u.findFunctions(false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		count := 0
		for i, u := range list {
			u.file.kept.Store(0)
			for j := range found[i].list {
				_, calls, err := u.findInlines(&found[i].list[j])
				if err != nil {
					b.Fatal(err)
				}
				count += calls
			}
		}
		if count < 1000 {
			b.Fatalf("%d inlined calls and ranges, expected at least 1000", count)
		}
	}
}
