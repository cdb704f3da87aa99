// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// command returns a load command of a kind and a size.
func commandOf(kind uint32, body []byte) []byte {
	le := binary.LittleEndian
	return append(le.AppendUint32(le.AppendUint32(nil, kind), uint32(8+len(body))), body...)
}

// fileOf returns a file with load commands, and bytes behind them.
func fileOf(commands [][]byte, rest []byte) []byte {
	le := binary.LittleEndian
	all := bytes.Join(commands, nil)
	h := []byte(magic64)
	for _, v := range []uint32{MachineARM64, 0, TypeDylib, uint32(len(commands)), uint32(len(all)), 0, 0} {
		h = le.AppendUint32(h, v)
	}
	return append(append(h, all...), rest...)
}

// segmentOf returns a segment with sections at addresses, of a size each.
func segmentOf(name string, address, size uint64, sections [][2]uint64) []byte {
	le := binary.LittleEndian
	b := append([]byte(name), make([]byte, nameSize-len(name))...)
	for _, v := range []uint64{address, size, 0, size} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range []uint32{5, 5, uint32(len(sections)), 0} {
		b = le.AppendUint32(b, v)
	}
	for _, s := range sections {
		b = append(b, "__text\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
		b = append(b, append([]byte(name), make([]byte, nameSize-len(name))...)...)
		b = le.AppendUint64(le.AppendUint64(b, s[0]), s[1])
		b = append(b, make([]byte, sectionSize-48)...)
	}
	return commandOf(cmdSegment64, b)
}

// exportsOf reads a trie of exports.
func exportsOf(t *testing.T, trie []byte) (list []Export, err error) {
	t.Helper()
	le := binary.LittleEndian
	commands := [][]byte{segmentOf("__TEXT", 0x1000, 0x1000, nil), commandOf(cmdExportsTrie, make([]byte, 8))}
	at := uint32(headerSize + len(commands[0]) + len(commands[1]))
	commands[1] = commandOf(cmdExportsTrie, le.AppendUint32(le.AppendUint32(nil, at), uint32(len(trie))))
	f, err := New("f", fileOf(commands, trie))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Exports(func(e Export) { list = append(list, e) })
	return list, err
}

// TestTriesAreBounded: one that is right, one whose nodes share their labels' bytes, one whose exports share a
// long name, one that goes in circles.
func TestTriesAreBounded(t *testing.T) {
	right := []byte("\x00\x02_a\x00\x0b_bc\x00\x0f\x02\x00\x10\x00\x02\x00\x20\x00")
	list, err := exportsOf(t, right)
	if err != nil || len(list) != 2 || list[0] != (Export{"_a", 0x1010}) || list[1] != (Export{"_bc", 0x1020}) {
		t.Errorf("%v, %v", list, err)
	}
	// Each node has a child by a label that ends far behind, over all other nodes.
	shared := make([]byte, 0, 1<<16)
	for i := range 0x3000 {
		next := 5 * (i + 1)
		shared = append(shared, 0, 1, byte(next)|0x80, byte(next>>7)|0x80, byte(next>>14)|0x40)
	}
	begun := time.Now()
	if _, err = exportsOf(t, append(shared, 0)); err == nil {
		t.Error("labels over each other are no error")
	}
	// A long name, and then exports of 6 bytes each, all beneath it.
	long := append([]byte("\x00\x01"), bytes.Repeat([]byte("n"), 60000)...)
	first := len(long) + 4
	long = append(long, 0, byte(first)|0x80, byte(first>>7)|0x80, byte(first>>14))
	node, children := []byte{0, 255}, []byte(nil)
	at := first + 2 + 255*5
	for i := range 255 {
		child := at + 4*i
		node = append(node, byte(i%255)+1, 0, byte(child)|0x80, byte(child>>7)|0x80, byte(child>>14))
		children = append(children, 2, 0, byte(i)&0x7f, 0)
	}
	list, err = exportsOf(t, append(append(long, node...), children...))
	if err == nil || !strings.Contains(err.Error(), "the names of") {
		t.Errorf("%d exports, %v", len(list), err)
	}
	if _, err = exportsOf(t, []byte("\x00\x01a\x00\x00")); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a circle: %v", err)
	}
	if d := time.Since(begun); d > time.Second {
		t.Errorf("it took %v", d)
	}
}

// TestSectionAtIsTheFirstThatBegins: sections one after the other, over each other, and as many as a file may
// have.
func TestSectionAtIsTheFirstThatBegins(t *testing.T) {
	f, err := New("f", fileOf([][]byte{segmentOf("__TEXT", 0x1000, 0x1000, [][2]uint64{{0x1080, 0x100}, {0x1000, 0x100}, {0x1040, 0x10}, {0x1300, 0x10}})}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[uint64]int{0xfff: 0, 0x1000: 2, 0x1048: 2, 0x10ff: 2, 0x1100: 1, 0x117f: 1, 0x1180: 0, 0x130f: 4, 0x1310: 0} {
		got := 0
		if s := f.SectionAt(address); s != nil {
			got = s.Index
		}
		if got != want {
			t.Errorf("%#x is in section %d, expected %d", address, got, want)
		}
	}
	many := make([][2]uint64, 1<<16)
	for i := range many {
		many[i] = [2]uint64{0x1000 + 16*uint64(i), 1 << 20}
	}
	if f, err = New("f", fileOf([][]byte{segmentOf("__TEXT", 0x1000, 1<<21, many)}, nil)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for i := range uint64(1 << 16) {
		if f.SectionAt(0x1000+16*i) == nil {
			t.Fatalf("%#x is in no section", 0x1000+16*i)
		}
	}
	if d := time.Since(begun); d > time.Second {
		t.Errorf("it took %v", d)
	}
}

// FuzzBounds reads any bytes as a Mach-O file, universal ones, too, and all sections that it then has.
func FuzzBounds(f *testing.F) {
	f.Add(fileOf([][]byte{segmentOf("__TEXT", 0x1000, 0x1000, [][2]uint64{{0x1000, 0x100}}), commandOf(cmdUUID, make([]byte, 16))}, make([]byte, 64)))
	f.Add([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x01\x01\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x1c\x00\x00\x00\x20\x00\x00\x00\x00" + magic64))
	f.Fuzz(func(t *testing.T, data []byte) {
		if IsUniversal(data) {
			_, _ = Slices(data)
		}
		file, err := New("fuzz", data)
		if err != nil {
			return
		}
		_ = file.Symbols(func(s *Symbol) { _ = file.SectionAt(s.Value) })
		_ = file.Exports(func(e Export) {})
		_, _ = file.FunctionStarts()
		for _, s := range file.Sections() {
			if b, err := file.Data(s); err == nil && uint64(len(b)) != s.Size {
				t.Errorf("section of %d bytes, expected %d", len(b), s.Size)
			}
		}
		_, _ = file.Entry()
		_, _, _ = file.UUID(), file.Notes(), file.Threads()
	})
}
