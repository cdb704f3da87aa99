// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"cmp"
	"strconv"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxThreads bounds the threads that are read; macOS allows a process some thousands.
	maxThreads = 1 << 16
	// codeMask has the bits of a code address that pointer authentication may have set.
	codeMask = "pauth_cmask"
	// userBits is the size of the addresses of processes of macOS and iOS.
	userBits = 47
	// kernelBit is set in addresses of the upper half of the address space, the kernel's. It is no part of a signature.
	kernelBit = 1 << 55
)

// addThreads adds the threads. A thread crashed if its last exception is one that ends processes, and it is
// the only such thread: others keep exceptions that the system dealt with.
func (c *Core) addThreads() {
	m := c.machine()
	list := c.file.Threads()
	if len(list) == 0 {
		c.problem("the core has no threads")
	}
	if len(list) > maxThreads {
		c.problem("the core has %d threads, %d are read", len(list), maxThreads)
		list = list[:maxThreads]
	}
	var crashed []*trace.Thread
	var reason fault
	for i, states := range list {
		th := &trace.Thread{Handle: uint64(i), ID: c.threadID(i), Arch: c.arch(), Unread: c.unread} //nolint:gosec // not negative
		c.threads = append(c.threads, th)
		if m == nil {
			continue
		}
		var last fault
		hasLast := false
		err := eachState(m, states, func(_ uint32, s *state, words []byte) {
			switch {
			case s.isOfTrap:
				last, hasLast = m.fault(words)
			case c.description != nil:
				setOf(s, c.description).Decode(words, &th.Registers)
			default:
				c.show(th, m, s, words)
			}
		})
		if err != nil {
			c.problem("thread %s: %v", th.ID, err)
		}
		c.finish(th, m)
		if hasLast {
			if f, ok := c.settled(last); ok {
				crashed, reason = append(crashed, th), f
			}
		}
	}
	if len(crashed) == 1 {
		crashed[0].Crashed = true
		c.crash(crashed[0], reason)
	}
}

// threadID returns the ID of a thread: the system's, or its number from 1 on.
func (c *Core) threadID(i int) string {
	if i < len(c.notes.threadIDs) {
		return c.notes.threadIDs[i]
	}
	return strconv.Itoa(i + 1)
}

// show sets the PC and the registers of a thread whose architecture has no plugin.
func (c *Core) show(th *trace.Thread, m *machine, s *state, words []byte) {
	for _, f := range s.fields {
		if f.size != 8 || uint64(f.offset)+8 > uint64(len(words)) {
			continue
		}
		value := le.Uint64(words[f.offset:])
		if f.name == m.pc {
			th.PC, th.HasPC = value, true
		}
		th.Named = append(th.Named, trace.NamedRegister{Name: f.name, Bits: 64, Value: value})
	}
}

// finish sets the mask of signatures, and removes them from the registers that are addresses.
func (c *Core) finish(th *trace.Thread, m *machine) {
	d := c.description
	if d == nil {
		return
	}
	pc, ok := th.Registers.Uint64(d.PC, d.ByteOrder)
	if !ok {
		th.Problem = "the core has no state of it that has a program counter"
		return
	}
	r, ok := d.RegisterByName(codeMask)
	if !ok || len(m.pointers) == 0 {
		return
	}
	mask := c.signatures(pc)
	th.Registers.Set(r.Number, le.AppendUint64(nil, mask))
	for _, name := range m.pointers {
		p, ok := d.RegisterByName(name)
		if !ok {
			continue
		}
		value, ok := th.Registers.Uint64(p.Number, d.ByteOrder)
		switch {
		case !ok:
			continue
		case value&kernelBit != 0:
			value |= mask
		default:
			value &^= mask
		}
		th.Registers.Set(p.Number, le.AppendUint64(nil, value))
	}
}

// signatures returns the bits of an address that pointer authentication may have changed, of a thread with a
// PC: those above the addresses of its half of the address space, of which macOS ignores none. How many bits an
// address of the kernel has is not known where the core does not say it.
func (c *Core) signatures(pc uint64) uint64 {
	bits := cmp.Or(c.notes.bits, userBits)
	if pc&kernelBit != 0 {
		bits = c.notes.highBits
	}
	if bits == 0 || bits >= mostBits {
		return 0
	}
	return ^(uint64(1)<<bits - 1) &^ kernelBit
}

// crash sets the facts of the thread that crashed.
func (c *Core) crash(th *trace.Thread, f fault) {
	c.info.FaultAddress, c.info.HasFaultAddress = f.address, f.hasAddress
	crash := &trace.Crash{Name: f.String(), Address: f.address, HasAddress: f.hasAddress, Thread: th.ID}
	if pc, ok := th.PC, th.HasPC; ok && !f.hasAddress {
		crash.Address, crash.HasAddress = pc, true
	}
	if d := c.description; d != nil && !f.hasAddress {
		crash.Address, crash.HasAddress = th.Registers.Uint64(d.PC, d.ByteOrder)
	}
	c.info.Facts = &trace.Facts{Crash: crash}
}

// fillInfo sets the facts of the process as a whole.
func (c *Core) fillInfo() {
	facts := c.info.Facts
	if facts == nil {
		facts = &trace.Facts{}
	}
	facts.System = trace.System{Arch: c.arch()}
	for _, im := range c.images {
		if !c.isExecutable(im) {
			continue
		}
		facts.Process.Main = im.address
		facts.Process.Executable = object.LastPart(im.path)
		if im.file != nil {
			facts.System.OS = im.file.Build().Platform
		}
		break
	}
	c.info.Kind, c.info.Path, c.info.Facts = trace.MachOCore, c.path, facts
	if m := c.machine(); m != nil {
		c.info.Machine = uint16(m.elf)
	}
	c.info.Problems = c.problems.Kept()
	if n := c.problems.Dropped(); n > 0 {
		c.info.Problems = append(c.info.Problems, c.path+": "+strconv.Itoa(n)+" more problems")
	}
}
