// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// loadedAs is a file as a loader lays it out, behind a number of bytes.
func loadedAs(f *File, file []byte, offset int) (data []byte, pieces []Piece) {
	data = make([]byte, offset+int(f.SizeOfImage()))
	copy(data[offset:], file[:f.SizeOfHeaders()])
	for _, s := range f.Sections() {
		copy(data[offset+int(s.RVA):], s.inFile(file))
	}
	return data, []Piece{{0, uint64(f.SizeOfImage()), uint64(offset)}}
}

// allOf writes a file's identity, exports, functions and rows.
func allOf(f *File) string {
	var b strings.Builder
	id, err := f.Identity()
	fmt.Fprintln(&b, id, err)
	exports, err := f.Exports()
	fmt.Fprintln(&b, exports, err)
	err = f.Functions(func(fn Function) bool {
		fmt.Fprintf(&b, "%#x %#x", fn.Start, fn.End)
		fmt.Fprintln(&b, f.Rows(fn, func(r *Row) bool { fmt.Fprintln(&b, *r); return true }))
		return true
	})
	fmt.Fprintln(&b, err)
	return b.String()
}

// An image in memory has all that its file has, and the file that is made of it has that, too.
func TestAnImageHasWhatItsFileHas(t *testing.T) {
	arm64 := &maker{machine: MachineARM64, code: make([]byte, 32)}
	arm64.functions(madeCode, arm64.record(8, []byte("\xe1\x81\x04\xe4"), nil, 0))
	for i, m := range append(seeds(), arm64) {
		file := m.file()
		f, err := New("made.dll", file)
		if err != nil {
			t.Fatal(err)
		}
		want := allOf(f)
		for _, at := range []int{0, 77} {
			data, pieces := loadedAs(f, file, at)
			image, err := NewImage("made.dll", data, pieces)
			if err != nil {
				t.Fatal(err)
			}
			if got := allOf(image); got != want {
				t.Errorf("%d: the image has\n%s\nthe file\n%s", i, got, want)
			}
			again, err := New("made.dll", image.AsFile())
			if err != nil {
				t.Fatal(err)
			}
			if got := allOf(again); got != want {
				t.Errorf("%d: the file of the image has\n%s\nthe file\n%s", i, got, want)
			}
		}
	}
}

// Of an image of which parts are missing, the others are read.
func TestAnImageWithHoles(t *testing.T) {
	m := seeds()[1]
	file := m.file()
	f, err := New("made.dll", file)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := loadedAs(f, file, 0)
	for _, c := range []struct {
		pieces  []Piece
		present []bool // of the sections
		err     string
	}{
		{[]Piece{{0, 0x1000, 0}, {madeData, 0x1000, madeData}}, []bool{false, true}, ""},
		{[]Piece{{0, 0x1004, 0}}, []bool{true, false}, ""},
		{[]Piece{{madeCode, 0x1000, madeCode}}, nil, ErrNotPE.Error()},
		{[]Piece{{0, 1 << 40, 1 << 50}}, nil, ErrNotPE.Error()},
		{nil, nil, ErrNotPE.Error()},
	} {
		image, err := NewImage("made.dll", data, c.pieces)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: %v", c.pieces, err)
		}
		if err != nil {
			continue
		}
		var present []bool
		for _, s := range image.Sections() {
			present = append(present, s.FileSize() > 0)
		}
		if !slices.Equal(present, c.present) {
			t.Errorf("%v: sections are there: %v", c.pieces, present)
		}
		useAll(image)
		_ = image.AsFile()
	}
}

// FuzzImage reads images in memory, of which two pieces are there.
func FuzzImage(f *testing.F) {
	for _, m := range seeds() {
		file, _ := New("fuzz", m.file())
		data, _ := loadedAs(file, m.file(), 0)
		f.Add(data, uint32(len(data)), uint32(0), uint64(0), uint64(0))
		f.Add(data, uint32(0x1000), uint32(0x1800), uint64(0x100), uint64(0x1800))
	}
	f.Fuzz(func(_ *testing.T, data []byte, first, second uint32, size, offset uint64) {
		file, err := NewImage("fuzz", data, []Piece{{0, uint64(first), 0}, {max(first, second), size, offset}})
		if err != nil {
			return
		}
		useAll(file)
		if again, err := New("fuzz", file.AsFile()); err == nil {
			useAll(again)
		}
	})
}
