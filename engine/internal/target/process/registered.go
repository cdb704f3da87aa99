// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"debug/elf"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/internal/target/registered"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// maxRegistered bounds the object files of JIT code that are copied while the threads stand
// still.
const maxRegistered = 64 << 20

// descriptor is the address of a list of JIT code.
type descriptor struct {
	address uint64
	list    *registered.Process
}

// findRegistered looks in the files of the process's code for lists of JIT code, while the
// process goes on.
func (c *copied) findRegistered(o *outline) {
	seen := map[string]bool{}
	for i := range c.maps {
		m := &c.maps[i]
		if !m.isOfFile() || m.flags&elf.PF_X == 0 || seen[m.path] {
			continue
		}
		seen[m.path] = true
		path := o.elsewhere[m.path]
		if path == "" {
			path = o.root + m.path
		}
		if d, ok := c.descriptorIn(path, m.path); ok {
			c.descriptors = append(c.descriptors, d)
		}
	}
}

// descriptorIn returns the descriptor in a file that is mapped.
func (c *copied) descriptorIn(path, mapped string) (d descriptor, ok bool) {
	file, err := object.Open(path)
	if err != nil {
		return d, false // opening the modules reports why
	}
	defer file.Close()
	address, ok := registered.Descriptor(file)
	if !ok {
		return d, false
	}
	for _, s := range file.Segments() {
		if address-s.Address >= s.FileSize {
			continue
		}
		offset := s.Offset + address - s.Address
		for i := range c.maps {
			if m := &c.maps[i]; m.path == mapped && m.flags&elf.PF_W != 0 && offset >= m.offset && offset-m.offset < m.end-m.start {
				return descriptor{m.start + offset - m.offset, registered.ProcessOf(file, c.readAndKeep)}, true
			}
		}
	}
	return d, false
}

// copyRegistered copies the lists, and the object files that they have.
func (c *copied) copyRegistered() {
	left := uint64(maxRegistered)
	for _, d := range c.descriptors {
		files, _ := d.list.Files(d.address) // reading the copy reports the error again
		for _, f := range files {
			if f.Size > left {
				return
			}
			left -= f.Size
			if c.isFree(f.Address, f.Size) {
				c.copy(f.Address, f.Address+f.Size)
			}
		}
	}
}

// readAndKeep reads memory of the process, and adds it to the copy.
func (c *copied) readAndKeep(address uint64, buf []byte) (int, error) {
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf))
	n, err := unix.ProcessVMReadv(c.lead, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(buf)}}, 0)
	if err != nil || n < len(buf) {
		return max(n, 0), target.ErrNoMemory
	}
	if c.isFree(address, uint64(n)) {
		data := c.buffer.take(n)
		copy(data, buf)
		c.keep(address, data)
	}
	return n, nil
}

// isFree reports whether no part of a range of memory was copied, as stacks are. A corrupt list
// may lead anywhere.
func (c *copied) isFree(address, size uint64) bool {
	return size > 0 && address+size > address && !slices.ContainsFunc(c.pieces, func(p piece) bool { return address < p.end() && p.address < address+size })
}
