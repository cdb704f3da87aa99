// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/wine"
)

// A thread of Wine has two stacks: one for the code of Windows, and one for that of Unix, on which its system calls
// execute. While it is in a system call, its stack pointer leads to the second one only.

// maxUnmapped bounds the images without a file whose headers are copied.
const maxUnmapped = 256

// copyWindows copies what leads from the system calls of a program of Windows to its own code, and that code's stacks.
func (c *copied) copyWindows(t *tracer) {
	if c.machine.elf != uint16(elf.EM_X86_64) || !slices.ContainsFunc(c.maps, func(m mapping) bool { return wine.IsOf(m.path) }) {
		return
	}
	hasUnmapped := c.copyUnmappedImages()
	var stacks []span
	for _, th := range t.threads {
		address, ok := c.register(th, wine.GSBase)
		if !ok || !th.isStopped {
			continue
		}
		block, ok := wine.BlockAt(address, func(address uint64, buf []byte) int { n, _ := c.readAndKeep(address, buf); return n })
		if !ok {
			continue
		}
		if hasUnmapped {
			hasUnmapped = len(block.Modules()) == 0 // reading the list copies it, which is of all threads
		}
		for _, sp := range block.StackPointers() {
			if m := find(c.maps, sp); m != nil && sp < block.StackEnd {
				stacks = append(stacks, span{max(m.start, sp-min(sp, redZone)), min(m.end, block.StackEnd, sp+maxStack)})
			}
		}
	}
	slices.SortStableFunc(c.pieces, func(a, b piece) int { return cmp.Compare(a.address, b.address) })
	c.copyAll(without(joined(stacks), c.pieces))
}

// copyUnmappedImages copies the headers of PE images whose files are not mapped, and reports whether there are any.
func (c *copied) copyUnmappedImages() bool {
	count := 0
	read := wine.Reader(newStill(c.lead).read)
	for i := range c.maps {
		m := &c.maps[i]
		if m.isOfFile() || m.flags&elf.PF_R == 0 || count == maxUnmapped || !read.IsImage(m.start) || !c.isFree(m.start, headerSize) {
			continue
		}
		count++
		c.copy(m.start, m.start+min(m.end-m.start, headerSize))
	}
	return count > 0
}
