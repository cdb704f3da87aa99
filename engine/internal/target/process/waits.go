// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/target"
)

// callNumbers are where elf_prstatus has the number of the system call that a thread is in, by
// architecture: orig_rax, which is negative in none, and x8. restart is the number of the call that
// goes on with one that was interrupted.
var callNumbers = map[string]struct {
	offset  int
	restart uint64
}{
	"x86_64":  {112 + 15*8, 219},
	"aarch64": {112 + 8*8, 128},
}

// waitOf returns what a thread waits for, for the recording; nil for one that executes.
func (r *recorder) waitOf(th *tracee, name *threadName) []byte {
	if r.options.OnlyRunning || !isWaiting(th.state) {
		return nil
	}
	w := perfdata.Wait{State: th.state}
	w.Call, w.HasCall = r.callOf(th)
	if known := callNumbers[r.copied.description.Name]; w.HasCall && w.Call == known.restart {
		// A stop has interrupted it before.
		w.Call, w.HasCall = name.call, name.hasCall
	}
	name.call, name.hasCall = w.Call, w.HasCall
	c := r.copied
	if call, ok := target.FutexArguments(c.description.Name, func(number uint32) (uint64, bool) { return c.register(th, number) }); ok && w.HasCall && w.Call == target.FutexNumber(c.description.Name) {
		w.Futex, w.HasFutex = call, true
		w.MemoryStart, w.Memory = c.around(call.Address)
	}
	r.raw = w.Append(r.raw[:0])
	return r.raw
}

// callOf returns the number of the system call that a stopped thread is in.
func (r *recorder) callOf(th *tracee) (number uint64, ok bool) {
	known, ok := callNumbers[r.copied.description.Name]
	if !ok || r.copied.machine.class != elf.ELFCLASS64 || len(th.registers) == 0 || len(th.registers[0].data) < known.offset+8 {
		return 0, false
	}
	number = order.Uint64(th.registers[0].data[known.offset:])
	return number, int64(number) >= 0 //nolint:gosec // its bits
}

// around returns the copied memory around the word of a futex.
func (c *copied) around(address uint64) (start uint64, memory []byte) {
	m := find(c.maps, address)
	if m == nil {
		return address, nil
	}
	start = max(m.start, address-target.LockBefore)
	end := min(m.end, address+target.LockBehind)
	for at := start; at < end; {
		piece := c.pieceAt(at)
		if piece == nil {
			break
		}
		memory = append(memory, piece.data[at-piece.address:min(end, piece.end())-piece.address]...)
		at = start + uint64(len(memory))
	}
	return start, memory
}

// pieceAt returns the copied range with an address; nil where it was not copied.
func (c *copied) pieceAt(address uint64) *piece {
	for i := range c.pieces {
		if p := &c.pieces[i]; address >= p.address && address < p.end() {
			return p
		}
	}
	return nil
}
