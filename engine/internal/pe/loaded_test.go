// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"errors"
	"fmt"
	"testing"
)

// loadedMaker is a file with a function, an export-free section of data and a symbol table.
func loadedMaker() *maker {
	m := &maker{code: []byte{0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3}, strings: []byte("x\x00")}
	info := m.put(1, 5, 2, 0, 5, 0x32, 1, 0x30) // alloc 0x20, push rbx
	m.functions(madeCode, madeCode+uint32(len(m.code)), info)
	return m
}

// memoryOf loads a file as Windows does, and returns how its memory is read.
func memoryOf(t testing.TB, f *File, data []byte) func(rva, n uint32) []byte {
	t.Helper()
	image := make([]byte, f.SizeOfImage())
	copy(image, data[:f.SizeOfHeaders()])
	for _, s := range f.Sections() {
		b, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		copy(image[s.RVA:], b)
	}
	return func(rva, n uint32) []byte { return prefix(image, uint64(rva), uint64(n)) }
}

func TestFileFromMemoryHasTheRowsOfTheFile(t *testing.T) {
	m := loadedMaker()
	want := m.open(t)
	data, err := FromMemory(memoryOf(t, want, m.file()), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	got, err := New("memory", data)
	if err != nil {
		t.Fatal(err)
	}
	for pc := uint64(madeBase + madeCode); pc < madeBase+madeCode+uint64(len(m.code)); pc++ {
		var a, b Row
		if errA, errB := want.RowAt(pc, &a), got.RowAt(pc, &b); errA != nil || errB != nil || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%#x: %v, %v in memory (%v, %v)", pc, a, b, errA, errB)
		}
	}
	if err := got.Symbols(func(s *Symbol) { t.Errorf("symbol %s", s.Name) }); err != nil {
		t.Error(err)
	}
}

// TestSectionsThatMemoryLacks: a core may have the headers alone.
func TestSectionsThatMemoryLacks(t *testing.T) {
	m := loadedMaker()
	read := memoryOf(t, m.open(t), m.file())
	data, err := FromMemory(func(rva, n uint32) []byte {
		if rva >= madeCode {
			return nil
		}
		return read(rva, n)
	}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New("memory", data)
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Sections()[0].FileSize(); n != 0 {
		t.Errorf("%d bytes of code", n)
	}
	if err := f.RowAt(madeBase+madeCode, new(Row)); err == nil {
		t.Error("there is a row")
	}
}

func TestMemoryWithoutAnImage(t *testing.T) {
	if _, err := FromMemory(func(uint32, uint32) []byte { return []byte("MZ") }, 1<<20); !errors.Is(err, ErrNotPE) {
		t.Error(err)
	}
	m := loadedMaker()
	read := memoryOf(t, m.open(t), m.file())
	if _, err := FromMemory(read, 0x2000); err == nil {
		t.Error("more than may be read was read")
	}
}

// FuzzFromMemory has memory from nowhere.
func FuzzFromMemory(f *testing.F) {
	f.Add(loadedMaker().file())
	f.Fuzz(func(t *testing.T, memory []byte) {
		const most = 1 << 20
		data, err := FromMemory(func(rva, n uint32) []byte { return prefix(memory, uint64(rva), uint64(n)) }, most)
		if err == nil && len(data) > most+maxHeaderBytes {
			t.Errorf("%d bytes", len(data))
		}
		if err == nil {
			if f, err := New("memory", data); err == nil {
				_, _ = f.Identity()
				_ = f.RowAt(f.ImageBase()+0x1000, new(Row))
			}
		}
	})
}
