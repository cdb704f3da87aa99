// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Sizes of r_debug and link_map in a 64-bit <link.h>.
const (
	rDebugBytes  = 40
	linkMapBytes = 40
)

type objectPlan struct {
	object *CodeObject
	link   uint64 // of its link_map
	uri    string
	memory uint64 // of its Image where the URI is memory://
}

// placeObjects puts the runtime's list of code objects into memory
// (process.cpp, update_code_objects), and their segments.
func (im *Image) placeObjects() {
	c := im.core
	im.rdebug = c.RDebug
	for i := range c.CodeObjects {
		o := objectPlan{object: &c.CodeObjects[i], uri: c.CodeObjects[i].URI}
		if o.uri == "" {
			o.memory = im.allocate(c.runtimePlace(), 0, uint64(len(o.object.Image)))
			o.uri = fmt.Sprintf("memory://%d#offset=0x%x&size=%d", c.PID, o.memory, len(o.object.Image))
			im.add(c.runtimePlace(), o.memory, fmt.Sprintf("CodeObjects[%d]'s file", i), whole(o.object.Image))
		}
		if !o.object.Unloaded {
			im.placeSegments(i, o.object)
		}
		im.objects = append(im.objects, o)
	}
	if im.rdebug == 0 {
		im.placeList()
	}
}

// placeList writes r_debug, each link_map and the names, one behind the other.
func (im *Image) placeList() {
	c, le := im.core, binary.LittleEndian
	n := uint64(rDebugBytes + linkMapBytes*len(im.objects))
	for i := range im.objects {
		n += uint64(len(im.objects[i].uri)) + 1
	}
	at := im.allocate(c.runtimePlace(), 0, n)
	im.rdebug = at
	for i := range im.objects {
		im.objects[i].link = at + rDebugBytes + uint64(i)*linkMapBytes
	}
	state := uint32(0) // RT_CONSISTENT
	if c.UpdatingObjects {
		state = 1 // RT_ADD
	}
	link := func(i int) uint64 {
		if i < 0 || i >= len(im.objects) {
			return 0
		}
		return im.objects[i].link
	}
	b := le.AppendUint64(nil, uint64(c.RuntimeVersion))
	b = le.AppendUint64(b, link(0))
	b = le.AppendUint64(b, at) // r_brk
	b = le.AppendUint64(b, uint64(state))
	b = le.AppendUint64(b, 0)
	name := at + rDebugBytes + linkMapBytes*uint64(len(im.objects))
	var names []byte
	for i := range im.objects {
		o := &im.objects[i]
		for _, v := range []uint64{o.object.Load, name + uint64(len(names)), 0, link(i + 1), link(i - 1)} {
			b = le.AppendUint64(b, v)
		}
		names = append(append(names, o.uri...), 0)
	}
	im.add(c.runtimePlace(), at, "r_debug", data{append(b, names...), roundUp(n, pageSize)})
}

// placeSegments puts an object's PT_LOADs into GPU memory as the loader does: whole
// pages, with zeros beyond the file's bytes.
func (im *Image) placeSegments(i int, o *CodeObject) {
	f, err := elf.NewFile(bytes.NewReader(o.Image))
	if err != nil {
		im.fail("CodeObjects[%d]: %v", i, err)
		return
	}
	defer f.Close()
	var first, end uint64 = ^uint64(0), 0
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			first, end = min(first, p.Vaddr&^(pageSize-1)), max(end, p.Vaddr+p.Memsz)
		}
	}
	if end > 1<<32 || first >= end {
		im.fail("CodeObjects[%d]: segments from %#x to %#x", i, first, end)
		return
	}
	memory := make([]byte, roundUp(end-first, pageSize))
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 {
			continue
		}
		if p.Filesz > p.Memsz {
			im.fail("CodeObjects[%d]: a segment's file size is over its memory size", i)
			return
		}
		if _, err := p.ReadAt(memory[p.Vaddr-first:][:p.Filesz], 0); err != nil {
			im.fail("CodeObjects[%d]: segment at %#x: %v", i, p.Vaddr, err)
			return
		}
	}
	im.chunks = append(im.chunks, chunk{place: GPU, address: o.Load + first, content: whole(memory),
		executable: true, name: fmt.Sprintf("CodeObjects[%d]", i)})
}

func (c *Core) runtimePlace() Place {
	if c.RuntimeInGPU {
		return GPU
	}
	return Host
}
