// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// useAll asks a file for all that it has.
func useAll(t *testing.T, f *File) {
	_, _, _ = f.UUID(), f.Imports(), f.Notes()
	_, _ = f.Entry()
	_ = f.Threads()
	for _, s := range f.Sections() {
		_, _ = f.Data(s)
		_, _ = f.Relocated(s)
		_, _ = f.Bytes(s.Address, 4)
		_, _, _ = f.FunctionAt(s.Address)
	}
	_ = f.Symbols(func(s *Symbol) {
		_ = f.SectionAt(s.Value)
	})
	_ = f.Exports(func(Export) {})
	_, _ = f.DebugMap()
	starts, _ := f.FunctionStarts()
	for i, start := range starts {
		if i > 0 && start <= starts[i-1] {
			t.Fatalf("start %#x behind %#x", start, starts[i-1])
		}
	}
	useUnwindInfo(t, f)
	_ = f.Problems()
}

// useUnwindInfo asks for all entries, and looks some up.
func useUnwindInfo(t *testing.T, f *File) {
	u, err := f.UnwindInfo()
	if err != nil || u == nil {
		return
	}
	var row cfi.Row
	left := 1 << 16
	for e, err := range u.Entries() {
		if left--; left < 0 {
			return
		}
		if err != nil {
			continue
		}
		if e.Start > e.End {
			t.Fatalf("entry %+v", e)
		}
		if err := u.Row(&e, &row); err == nil && (row.CFA.Kind != cfi.CFARegister || row.CFA.Offset < 0) {
			t.Fatalf("entry %+v: row %+v", e, row)
		}
		if found, ok, err := u.At(e.Start); ok && (err != nil || e.Start < found.Start || e.Start >= found.End) {
			t.Fatalf("%#x: %+v, %v", e.Start, found, err)
		}
	}
}

// smallFiles are the files of testdata of a kind: unwind, which are programs, or object.
func smallFiles(t testing.TB, kind string) (list [][]byte) {
	t.Helper()
	paths, _ := filepath.Glob("testdata/" + kind + "-*")
	if len(paths) < 2 {
		t.Fatal("no files")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

// FuzzFile reads files.
func FuzzFile(f *testing.F) {
	for _, kind := range []string{"unwind", "object"} {
		for _, data := range smallFiles(f, kind) {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := New("fuzz", data)
		if err != nil {
			return
		}
		useAll(t, file)
	})
}

// fileOfUnwindInfo makes a file of one segment with code and unwind information.
func fileOfUnwindInfo(machine uint32, code, info []byte) *File {
	text := append(append(make([]byte, 0, 0x1000+len(code)+len(info)), make([]byte, 0x1000)...), code...)
	at := uint64(len(text))
	text = append(text, info...)
	f := &File{name: "made", data: text, header: header{machine: machine}}
	size := uint64(len(text))
	segment := &Segment{Name: "__TEXT", Address: 0x100000000, MemSize: size, FileSize: size, Protection: CanRead | CanExecute}
	f.segments, f.mapped = []*Segment{segment}, []*Segment{segment}
	f.sections = []*Section{
		{Index: 1, Name: "__text", Segment: "__TEXT", Address: 0x100001000, Size: uint64(len(code)), Offset: 0x1000, Flags: hasInstructions},
		{Index: 2, Name: "__unwind_info", Segment: "__TEXT", Address: 0x100000000 + at, Size: uint64(len(info)), Offset: at},
	}
	return f
}

// unwindSection returns the unwind information of a file.
func unwindSection(t testing.TB, data []byte) (machine uint32, info []byte) {
	t.Helper()
	f, err := New("seed", data)
	if err != nil {
		t.Fatal(err)
	}
	if info, err = f.Data(f.Section("__TEXT", "__unwind_info")); err != nil {
		t.Fatal(err)
	}
	return f.Machine(), info
}

// FuzzUnwindInfo reads unwind information.
func FuzzUnwindInfo(f *testing.F) {
	for _, data := range smallFiles(f, "unwind") {
		machine, info := unwindSection(f, data)
		f.Add(machine == MachineARM64, info)
	}
	f.Add(true, madeInfo(regularPage, 0x1000, 0x04000003, 0x1010, 0x02001000, 0x1020))
	f.Add(false, madeInfo(compressedPage, 0x1000, 0x03070000, 0x1010, 0x02041400, 0x1020))
	f.Fuzz(func(t *testing.T, isARM64 bool, info []byte) {
		machine := uint32(MachineX86_64)
		if isARM64 {
			machine = MachineARM64
		}
		useUnwindInfo(t, fileOfUnwindInfo(machine, make([]byte, 64), info))
	})
}

// words are numbers of 32 bits.
func words(list ...uint32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// madeInfo makes unwind information of one page: pairs of an offset and an encoding, and the end.
func madeInfo(kind uint32, list ...uint32) []byte {
	pairs, end := list[:len(list)-1], list[len(list)-1]
	count := uint32(len(pairs) / 2)
	b := words(1, 28, 0, 28, 0, 28, 2, pairs[0], 52, 0, end, 0, 0)
	if kind == regularPage {
		b = append(b, words(kind, regularHeader|count<<16)...)
		return append(b, words(pairs...)...)
	}
	b = append(b, words(kind, compressedHeader|count<<16, compressedHeader+4*count|count<<16)...)
	for i := range count {
		b = append(b, words(pairs[2*i]-pairs[0]|i<<24)...)
	}
	for i := range count {
		b = append(b, words(pairs[2*i+1])...)
	}
	return b
}
