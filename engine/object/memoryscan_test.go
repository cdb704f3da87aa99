// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// memoryWith is memory with a cubin, what looks like one, and a fat binary, at odd places of pages.
func memoryWith(t testing.TB) (memory, cubin []byte, place int) {
	t.Helper()
	for n, err := range BundleEntries("f", fatFixture(t, "plain.fatbin")) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(n.Name, "sm_80") {
			cubin = n.Data
		}
	}
	memory = make([]byte, 3*scanChunk)
	place = scanChunk - 32 // over the edge of what is read at once
	copy(memory[place:], cubin)
	host := bytes.Clone(cubin)
	binary.LittleEndian.PutUint16(host[18:], uint16(elf.EM_X86_64))
	copy(memory[100:], host)
	far := bytes.Clone(cubin[:64])
	binary.LittleEndian.PutUint64(far[40:], 1<<40)
	copy(memory[2*scanChunk:], far)
	copy(memory[2*scanChunk+0x2345:], fatFixture(t, "zstd.fatbin"))
	copy(memory[len(memory)-len(cubinMagic):], cubinMagic)
	return memory, cubin, place
}

// readOf reads memory that begins at an address.
func readOf(memory []byte, start uint64) func(address uint64, buf []byte) int {
	return func(address uint64, buf []byte) int {
		if address-start >= uint64(len(memory)) {
			return 0
		}
		return copy(buf, memory[address-start:])
	}
}

// TestNestedInMemory finds a cubin and the entries of a fat binary, and nothing else.
func TestNestedInMemory(t *testing.T) {
	memory, cubin, place := memoryWith(t)
	const start = 0x7f0000000000
	var got []Nested
	for n, err := range NestedInMemory("p", []MemoryRange{{1, 0}, {0x1000, 0x1000}, {start, uint64(len(memory))}}, readOf(memory, start)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if len(got) != 4 || got[0].Name != "cubin@0x7f00000fffe0" || !bytes.Equal(got[0].Data, cubin) || got[0].Offset != start+uint64(place) {
		t.Fatalf("%d code objects, the first %s of %d bytes", len(got), got[0].Name, len(got[0].Data))
	}
	if got[1].Bundle != start+2*scanChunk+0x2345 || !strings.HasSuffix(got[1].Name, "sm_80") || !bytes.Equal(got[1].Data, cubin) {
		t.Errorf("%+v", got[1].Name)
	}
}

// TestNestedInACore finds them in the memory of a core, and opens one by its name.
func TestNestedInACore(t *testing.T) {
	memory, cubin, place := memoryWith(t)
	const start = 0x7f0000000000
	b := testFile{typ: elf.ET_CORE, machine: 62, programs: []Program{{Type: elf.PT_LOAD, Offset: 0x1000, Address: start, FileSize: uint64(len(memory)), MemSize: uint64(len(memory))}}}.bytes()
	b = append(append(b, make([]byte, 0x1000-len(b))...), memory...)
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := OpenNested(path+"#cubin@0x7f00000fffe0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if !bytes.Equal(o.Data(), cubin) || o.Machine() != uint16(elf.EM_CUDA) {
		t.Errorf("%d bytes", len(o.Data()))
	}
	core, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	entries, problems := listed(core.Nested(nil))
	if len(entries) != 4 || len(problems) != 0 {
		t.Errorf("%q, %q", entries, problems)
	}
	for n := range core.Nested(nil) {
		if n.Index == 0 && n.Offset != 0x1000+uint64(place) {
			t.Errorf("%s is at %#x of the file", n.Name, n.Offset)
		}
	}
}

// TestMemoryIsBounded: a search ends at its bound, and candidates that lie cost little.
func TestMemoryIsBounded(t *testing.T) {
	_, cubin, _ := memoryWith(t)
	lie := bytes.Clone(cubin[:64])
	binary.LittleEndian.PutUint64(lie[40:], 64)
	binary.LittleEndian.PutUint64(lie[24:], 1<<40) // read as a section's offset, behind the memory
	binary.LittleEndian.PutUint16(lie[58:], 64)
	binary.LittleEndian.PutUint16(lie[60:], 0xffff) // a table of nearly 4 MiB
	liars := bytes.Repeat(lie, 1<<16)
	read, problems := 0, 0
	for n, err := range NestedInMemory("p", []MemoryRange{{0, uint64(len(liars))}}, func(address uint64, buf []byte) int {
		n := readOf(liars, 0)(address, buf)
		read += n
		return n
	}) {
		if err == nil || !strings.Contains(err.Error(), "headers of cubins were not looked at") {
			t.Errorf("%s, %v", n.Name, err)
		}
		problems++
	}
	if problems != 1 {
		t.Errorf("%d problems", problems)
	}
	if most := 8 * (scanOverhead + len(liars)) * 10; read > most {
		t.Errorf("%d bytes were read of %d, expected at most %d", read, len(liars), most)
	}
	var last error
	s := &memoryScan{
		bundleWalk: newBundleWalk("p", 0, func(_ Nested, err error) bool { last = err; return true }),
		read:       func(_ uint64, buf []byte) int { return len(buf) }, left: 4 * scanChunk,
	}
	s.all([]MemoryRange{{0, 8 * scanChunk}, {1 << 40, scanChunk}})
	if last == nil || !strings.Contains(last.Error(), "p: memory at 0x0 and what follows was not searched for code: the bound is") {
		t.Errorf("%v", last)
	}
}

// TestImagesOfACUDACore are its sections of cubins.
func TestImagesOfACUDACore(t *testing.T) {
	_, cubin, _ := memoryWith(t)
	section := func(name string) testSection { return testSection{name: name, typ: 0x80000007, data: cubin} }
	path := filepath.Join(t.TempDir(), "core")
	b := testFile{typ: elf.ET_CORE, machine: 190, sections: []testSection{section(".cudbg.relfimg.dev0.ctx0"), section(".cudbg.elfimg.dev0.ctx0"), section(".cudbg.elfimg.dev0.ctx0")}}.bytes()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cudbg.relfimg.dev0.ctx0", "2"} {
		o, err := OpenNested(path+"#"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(o.Data(), cubin) {
			t.Errorf("%s has %d bytes", name, len(o.Data()))
		}
		_ = o.Close()
	}
	if _, err := OpenNested(path+"#cudbg.elfimg.dev0.ctx0", nil); err == nil || errors.Is(err, ErrNoNested) {
		t.Errorf("a name that two have: %v", err)
	}
}

// FuzzMemory searches whatever memory has.
func FuzzMemory(f *testing.F) {
	memory, cubin, _ := memoryWith(f)
	f.Add(memory[2*scanChunk:][:0x4000])
	f.Add(cubin)
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		for n, err := range NestedInMemory("p", []MemoryRange{{0, uint64(len(data))}}, readOf(data, 0)) {
			if total += len(n.Data); err == nil && n.Format == "memory" && n.Offset+uint64(len(n.Data)) > uint64(len(data)) {
				t.Fatalf("%s ends behind the memory", n.Name)
			}
		}
	})
}
