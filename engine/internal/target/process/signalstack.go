// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"debug/elf"
	"slices"
)

// A signal handler may execute on its own stack (sigaltstack(2)). Then the interrupted stack is
// found through it.
//
// The kernel keeps a struct ucontext on the handler's stack with the interrupted registers, and
// uc_stack, the range of the handler's stack. So uc_stack is a stack_t whose range contains
// itself. As stacks are not walked while the threads stand still, it is searched for.

// interruptedOffset is the offset of the interrupted stack pointer from uc_stack, by machine
// (include/uapi/asm/ucontext.h and sigcontext.h of each).
var interruptedOffset = map[elf.Machine]int{
	elf.EM_X86_64:  144, // gregs[REG_RSP], of mcontext at 40
	elf.EM_AARCH64: 416, // sp behind fault_address and 31 registers, of mcontext at 176
	elf.EM_RISCV:   176, // the third of gregs, of mcontext at 176
}

const (
	// maxNested bounds the stacks of handlers that lead to one another.
	maxNested = 4
	// The flags of a stack_t: SS_ONSTACK, SS_DISABLE and SS_AUTODISARM.
	flagOnStack  = 1
	flagDisarmed = 1 << 31
)

// copyStacks copies the stacks of threads with these stack pointers, and the stacks that
// handlers on them interrupted.
func (c *copied) copyStacks(pointers []uint64) {
	defer c.copyFirstStack()
	offset, known := interruptedOffset[elf.Machine(c.machine.elf)]
	for nested := 0; len(pointers) > 0 && nested <= maxNested; nested++ {
		first := len(c.pieces)
		c.copyAll(c.stackRanges(pointers))
		if !known || c.machine.class != elf.ELFCLASS64 {
			return
		}
		var interrupted []uint64
		for _, p := range c.pieces[first:] {
			interrupted = appendInterrupted(interrupted, p, offset)
		}
		// Stacks that are copied already are executed on by threads.
		pointers = slices.DeleteFunc(interrupted, c.isCopied)
	}
}

// copyFirstStack copies the end of the stack that the kernel made if no thread executes on it:
// the first thread left it for a runtime's stack, and the callers are there.
func (c *copied) copyFirstStack() {
	for i := range c.maps {
		m := &c.maps[i]
		if m.path != "[stack]" || slices.ContainsFunc(c.pieces, func(p piece) bool { return p.address >= m.start && p.address < m.end }) {
			continue
		}
		c.copy(m.end-min(m.end-m.start, maxPart), m.end)
	}
}

// isCopied reports whether memory at an address was copied.
func (c *copied) isCopied(address uint64) bool {
	return slices.ContainsFunc(c.pieces, func(p piece) bool { return address >= p.address && address < p.end() })
}

// appendInterrupted appends the interrupted stack pointers of the ucontexts in a piece of a
// stack.
func appendInterrupted(list []uint64, p piece, offset int) []uint64 {
	data := p.data[:min(len(p.data), maxPart)]
	for i := int(-p.address & 7); i+offset+8 <= len(data); i += 8 {
		start, own := order.Uint64(data[i:]), p.address+uint64(i) //nolint:gosec // an index
		if start > own || own-start >= maxStack {
			continue
		}
		if flags := order.Uint32(data[i+8:]); flags&^(flagOnStack|flagDisarmed) != 0 {
			continue
		}
		size := order.Uint64(data[i+16:])
		if own-start >= size || size > maxStack {
			continue
		}
		if sp := order.Uint64(data[i+offset:]); sp < start || sp-start >= size {
			list = append(list, sp)
		}
	}
	return list
}
