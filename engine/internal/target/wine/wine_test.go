// SPDX-License-Identifier: Apache-2.0

package wine

import (
	"encoding/binary"
	"slices"
	"testing"
	"unicode/utf16"
)

// memory is one piece of memory.
type memory struct {
	start uint64
	data  []byte
}

func (m *memory) read(address uint64, buf []byte) int {
	if address < m.start || address-m.start >= uint64(len(m.data)) {
		return 0
	}
	return copy(buf, m.data[address-m.start:])
}

func (m *memory) put(address, value uint64) {
	binary.LittleEndian.PutUint64(m.data[address-m.start:], value)
}

const (
	blockAt   = 0x10000
	processAt = 0x12000
	loaderAt  = 0x12100
	entriesAt = 0x12200
	framesAt  = 0x13000
)

// newMemory has a thread in a system call that a callback made, and a process of two modules.
func newMemory() *memory {
	m := &memory{blockAt, make([]byte, 0x4000)}
	m.put(blockAt+blockSelf, blockAt)
	m.put(blockAt+blockStackBase, 0x320000)
	m.put(blockAt+blockProcess, processAt)
	m.put(blockAt+blockSwitch, framesAt)
	m.put(framesAt+frameStackPointer, 0x31f000)
	m.put(framesAt+frameEarlier, framesAt+0x100)
	m.put(framesAt+0x100+frameStackPointer, 0x31f800)
	m.put(processAt+processLoader, loaderAt)
	head := uint64(loaderAt + loaderList)
	m.put(head, entriesAt)
	for i, name := range []string{`C:\a.exe`, `C:\windows\ntdll.dll`} {
		at := uint64(entriesAt + 0x200*i)
		m.put(at, at+0x200)
		if i == 1 {
			m.put(at, head)
		}
		m.put(at+entryBase, 0x140000000+0x10000*uint64(i))
		m.put(at+entryImage, 0x5000)
		m.put(at+entryTime, 0x63f14e2b)
		units := utf16.Encode([]rune(name))
		m.put(at+entryPath, uint64(2*len(units)))
		m.put(at+entryPath+8, at+0x100)
		for k, u := range units {
			binary.LittleEndian.PutUint16(m.data[at+0x100+uint64(2*k)-m.start:], u)
		}
	}
	return m
}

func TestBlockOfAThread(t *testing.T) {
	m := newMemory()
	b, ok := BlockAt(blockAt, m.read)
	if !ok || b.StackEnd != 0x320000 {
		t.Fatalf("%+v, %v", b, ok)
	}
	if got, want := b.StackPointers(), []uint64{0x31f000, 0x31f800}; !slices.Equal(got, want) {
		t.Errorf("stack pointers %#x, expected %#x", got, want)
	}
	want := []Module{{0x140000000, 0x5000, 0x63f14e2b, `C:\a.exe`}, {0x140010000, 0x5000, 0x63f14e2b, `C:\windows\ntdll.dll`}}
	if got := b.Modules(); !slices.Equal(got, want) {
		t.Errorf("modules %+v, expected %+v", got, want)
	}
}

func TestNoBlock(t *testing.T) {
	m := newMemory()
	for _, address := range []uint64{0, blockAt + 8, 0x7fff0000, ^uint64(0)} {
		if _, ok := BlockAt(address, m.read); ok {
			t.Errorf("%#x has a block", address)
		}
	}
}

// TestListsThatAreCircles: the program can write to all of them.
func TestListsThatAreCircles(t *testing.T) {
	m := newMemory()
	m.put(framesAt+0x100+frameEarlier, framesAt)
	m.put(entriesAt+0x200, entriesAt)
	b, _ := BlockAt(blockAt, m.read)
	if n := len(b.StackPointers()); n != maxFrames {
		t.Errorf("%d stack pointers, expected %d", n, maxFrames)
	}
	if n := len(b.Modules()); n != 2 {
		t.Errorf("%d modules, expected 2", n)
	}
}

func TestDrivesOfAnEnvironment(t *testing.T) {
	for _, c := range []struct {
		environment []string
		want        string
	}{
		{[]string{"HOME=/home/u", "WINEPREFIX=/w"}, "/w/dosdevices"},
		{[]string{"WINEPREFIX=", "HOME=/home/u"}, "/home/u/.wine/dosdevices"},
		{[]string{"A=b"}, ""},
	} {
		if got := Drives(c.environment); got != c.want {
			t.Errorf("%v: %q, expected %q", c.environment, got, c.want)
		}
	}
}

// FuzzBlock has memory from nowhere.
func FuzzBlock(f *testing.F) {
	f.Add(newMemory().data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &memory{blockAt, data}
		b, ok := BlockAt(blockAt, m.read)
		if !ok {
			return
		}
		if n, k := len(b.StackPointers()), len(b.Modules()); n > maxFrames || k > maxModules {
			t.Errorf("%d stack pointers, %d modules", n, k)
		}
		Reader(m.read).IsImage(b.process)
	})
}
