// SPDX-License-Identifier: Apache-2.0

package cudacore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/sdk"
)

// core is a file, as an engine offers it.
type core struct {
	sdk.Engine
	data []byte
	read int
}

func (c *core) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (int, error) {
	if m.Space != sdk.FileSpace || m.Address > uint64(len(c.data)) {
		return 0, fmt.Errorf("nothing at %#x of space %d", m.Address, m.Space)
	}
	n := copy(buf, c.data[m.Address:])
	c.read += n
	if n < len(buf) {
		return n, fmt.Errorf("%d of %d bytes at %#x", n, len(buf), m.Address)
	}
	return n, nil
}

// request is that of an engine for a file, which has checked that the section headers are
// within it.
func request(data []byte) (*sdk.OpenTargetRequest, bool) {
	if len(data) < 64 {
		return nil, false
	}
	le := binary.LittleEndian
	f := &sdk.TargetFile{
		Machine: 190, OSABI: data[7], Size: uint64(len(data)), SectionsOffset: le.Uint64(data[40:]), SectionSize: uint32(le.Uint16(data[58:])),
		Sections: uint64(le.Uint16(data[60:])), SectionNames: uint32(le.Uint16(data[62:])),
	}
	ok := f.SectionsOffset <= f.Size && f.Sections*uint64(f.SectionSize) <= f.Size-f.SectionsOffset
	return &sdk.OpenTargetRequest{File: f}, ok
}

// open opens a core, and checks the answer as the engine does.
func open(t testing.TB, data []byte) *sdk.OpenTargetAnswer {
	t.Helper()
	req, ok := request(data)
	if !ok {
		t.Skip()
	}
	a, err := nvidia.New().OpenTarget(t.Context(), &core{data: data}, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(nvidia.Description(), req); err != nil {
		t.Fatalf("an answer that engines refuse: %v", err)
	}
	return a
}

// small is a core of few sections.
func small(seed uint64, driver int) *corefile.Core {
	return corefile.Random(seed, driver, corefile.Shape{Devices: 1, SMs: 2, Blocks: 1, Warps: 1, Registers: 4, Local: 8})
}

// FuzzCore changes cores at will: the answer is one that engines accept, and it comes.
func FuzzCore(f *testing.F) {
	for i, driver := range corefile.Drivers {
		f.Add(small(uint64(i), driver).Build().Bytes()) //nolint:gosec // small
	}
	f.Fuzz(func(t *testing.T, data []byte) { open(t, data) })
}

// TestLies has each field of each section header, and each word of each table, lie in several
// ways. Nothing panics or takes long, and engines accept every answer.
func TestLies(t *testing.T) {
	im := small(5, 615).Build()
	good := im.Bytes()
	whole := len(open(t, good).Threads)
	if whole == 0 {
		t.Fatal("no threads")
	}
	lies := []uint64{0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1<<64 - 1, 1<<64 - 64, uint64(len(good)), uint64(len(im.Sections))}
	silent := 0
	lie := func(at, size int) {
		for _, v := range lies {
			data := append([]byte(nil), good...)
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], v)
			copy(data[at:at+size], word[:])
			if a := open(t, data); len(a.Threads) < whole && len(a.Problems) == 0 {
				silent++
				t.Errorf("%#x at offset %#x of %d bytes: %d threads of %d, and no problem says so", v, at, size, len(a.Threads), whole)
			}
		}
	}
	for _, s := range im.Sections[1:] {
		for _, field := range []struct{ at, size int }{{4, 4}, {16, 8}, {24, 8}, {32, 8}, {40, 4}, {44, 4}, {56, 8}} {
			if isSilent(s, field.at) {
				continue
			}
			lie(int(s.HeaderAt)+field.at, field.size) //nolint:gosec // small
		}
	}
}

// isSilent reports whether a lie in a section's header is like a section that is not there.
func isSilent(s *corefile.Section, field int) bool {
	const kindAt, sizeAt = 4, 32
	return field == kindAt || field == sizeAt
}

// TestWordsOfTablesLie has each word of the tables lie.
func TestWordsOfTablesLie(t *testing.T) {
	im := small(6, 615).Build()
	good := im.Bytes()
	for _, s := range im.Sections[1:] {
		if s.EntrySize <= 4 {
			continue
		}
		for at := s.Offset; at+4 <= s.Offset+min(s.Size, 300); at += 4 {
			for _, v := range []uint32{0, 1, 31, 32, 0x7fff_ffff, 0xffff_ffff} {
				data := append([]byte(nil), good...)
				binary.LittleEndian.PutUint32(data[at:], v)
				open(t, data)
			}
		}
	}
}

// TestCutCores opens every part of a core that a full disk may leave, with the section headers
// of the whole before it.
func TestCutCores(t *testing.T) {
	im := small(7, 615).Build()
	good := im.Bytes()
	headers := good[im.Sections[0].HeaderAt:]
	for cut := 64; cut < int(im.Sections[0].HeaderAt); cut += 61 { //nolint:gosec // small
		data := append(append([]byte(nil), good[:cut]...), headers...)
		binary.LittleEndian.PutUint64(data[40:], uint64(cut)) //nolint:gosec // small
		open(t, data)
	}
}
