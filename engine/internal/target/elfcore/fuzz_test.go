// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// FuzzCore reads any bytes as a core, and all that it then has.
func FuzzCore(f *testing.F) {
	// Files that the seeds name.
	files := newLinked(f, little64())
	files.build(kernelDump)
	for _, b := range []*builder{little64(), big32()} {
		f.Add(smallCore(b))
		many := *b
		many.xnum = true
		many.parts = []part{{typ: 1, address: 0x1000, data: []byte("x")}}
		f.Add(many.core())
		for _, noFile := range []bool{false, true} {
			for _, d := range []dump{kernelDump, {data: true}, {head: true, text: true, data: true}, {head: true, data: true, noText: true}} {
				p := newLinked(f, b)
				p.noFile = noFile
				p.auxv = append(p.auxv, atSysinfoEHDR, libAt, atPageSize, 4096)
				p.build(d)
				f.Add(p.bytes())
			}
		}
	}
	for _, b := range []*builder{little64(), big32()} {
		s := started{builder: b, command: []string{"./p", "x"}, environment: []string{"A=1", "RANK=2"}, auxv: []uint64{atPageSize, 4096}}
		f.Add(s.bytes())
	}
	gpu := little64()
	gpu.parts = []part{{typ: 4, data: gpu.note(gpu.note(nil, coreOwner, ntPRSTATUS, gpu.status(1, 11, 0x100, 0)), gpuOwner, ntGPUCoreState, gpuNoteBytes(1, 1, 1))}}
	f.Add(gpu.core())
	for _, isExtended := range []bool{false, true} {
		sections, _ := sectionsCore(elf.EM_CUDA, isExtended, madeSection{data: []byte("state")})
		f.Add(sections)
	}
	for key, layouts := range statusLayouts {
		b := builder{numbers: numbers{ordersOf(key.machine)[0], key.is64}, typ: 4, machine: key.machine}
		b.parts = []part{{typ: 4, data: b.note(nil, coreOwner, ntPRSTATUS, make([]byte, layouts[0].size))}}
		f.Add(b.core())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		unread := &Core{path: "fuzz"}
		if err := unread.open(data, Options{Describe: noArchitecture, Finder: object.Finder{Sysroot: files.root}}); err == nil {
			for _, th := range unread.Threads() {
				if th.Problem == "" && th.Unread == "" || th.HasPC && th.PC != unread.header.mask(th.PC) {
					t.Errorf("%+v", th)
				}
			}
			for _, s := range unread.memory.files {
				if m, n := unread.FromFile(s.start); m != nil && n > s.size {
					t.Errorf("%d bytes are of a file that has %d", n, s.size)
				}
			}
			unread.Close()
		}
		c := &Core{path: "fuzz"}
		describe := func(object.ELFMachine) (*sdk.Description, error) {
			n := numbers{binary.LittleEndian, len(data) > 4 && data[4] == 2}
			if len(data) > 5 && data[5] == 2 {
				n.order = binary.BigEndian
			}
			return testDescription(n), nil
		}
		if err := c.open(data, Options{Describe: describe, Finder: object.Finder{Sysroot: files.root}}); err != nil {
			return
		}
		defer c.Close()
		start, read := c.Start(), 0
		for _, word := range append(start.Command, start.Environment...) {
			read += len(word)
		}
		if read > maxStrings || len(start.Command) > maxPointers+1 || len(start.Environment) > maxPointers+1 {
			t.Errorf("%d words and %d variables of %d bytes", len(start.Command), len(start.Environment), read)
		}
		info := c.Info()
		if len(info.Problems) > maxProblems+1 {
			t.Errorf("%d problems", len(info.Problems))
		}
		for i, th := range c.Threads() {
			if err := th.Registers.Validate(); err != nil {
				t.Errorf("thread %d: %v", i, err)
			}
		}
		buf := make([]byte, 100)
		for i := range c.memory.segments {
			s := &c.memory.segments[i]
			if i > 0 && s.start < c.memory.segments[i-1].start+c.memory.segments[i-1].size {
				t.Fatalf("segment %d overlaps the one before it", i)
			}
			c.ReadMemory(0, s.start-10, buf)
			c.ReadMemory(0, s.start+s.dumped-10, buf)
		}
		for i := range c.memory.files {
			s := &c.memory.files[i]
			c.ReadMemory(0, s.start-10, buf)
			c.ReadMemory(0, s.start+s.size-10, buf)
		}
		for _, m := range c.Modules() {
			for _, s := range m.Segments {
				if s.Start+s.Size < s.Start {
					t.Errorf("%s: the segment at %#x wraps", m.Path, s.Start)
				}
				c.Mapped(s.Start)
				c.ReadMemory(0, s.Start, buf)
			}
		}
	})
}
