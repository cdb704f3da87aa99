// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/sdk"
)

// Runtimes finds the frames of language runtimes in the threads of recorded processes: they are in
// memory that a recording does not have. Its methods are called one at a time.
type Runtimes interface {
	// Prepare is called before the threads of a process are stopped. isNew says that it is the first
	// time, or that its code is other code than before.
	Prepare(pid int, isNew bool)
	// Find is called while threads stand still. It sets the Stack of those in which it has found
	// frames.
	Find(m *Moment)
	// Problems returns what went wrong so far, each a sentence.
	Problems() []string
	// Close is called when the recording has ended.
	Close()
}

// Moment is a process some of whose threads stand still.
type Moment struct {
	PID     int
	Threads []MomentThread // of the process, by ID
	// Frames are the managed frames of all stacks.
	Frames []perfdata.RuntimeFrame
	copied *copied
	still  *still
}

// MomentThread is a thread at a moment.
type MomentThread struct {
	ID        int
	IsStopped bool          // it has a sample
	Registers sdk.Registers // where IsStopped
	Stack     *perfdata.RuntimeStack
}

// Read reads memory of the process, and returns how many bytes are there.
func (m *Moment) Read(address uint64, buf []byte) int { return m.still.read(address, buf) }

// Mapped reports whether there is memory at an address, and code.
func (m *Moment) Mapped(address uint64) (isMapped, isExecutable bool) {
	found := find(m.copied.maps, address)
	if found == nil {
		return false, false
	}
	return true, found.flags&elf.PF_X != 0
}

// MemorySize is how many bytes of memory can be read.
func (m *Moment) MemorySize() uint64 { return m.copied.readable() }

// codeOf returns the mappings of files with code.
func codeOf(maps []mapping) (list []mapping) {
	for i := range maps {
		if m := &maps[i]; m.flags&elf.PF_X != 0 && m.isOfFile() {
			list = append(list, *m)
		}
	}
	return list
}

// prepareRuntimes is called before the threads are stopped.
func (r *recorder) prepareRuntimes() {
	c := r.copied
	r.stacks = nil
	if r.runtimes == nil {
		return
	}
	isNew := !r.isPrepared
	if isNew || !bytes.Equal(c.rawMaps, r.preparedMaps) {
		r.preparedMaps = bytes.Clone(c.rawMaps)
		now := codeOf(c.maps)
		isNew = isNew || !slices.Equal(now, r.preparedCode)
		r.preparedCode = now
	}
	r.isPrepared = true
	r.runtimes.Prepare(r.pid, isNew)
	c.whileStill = r.findFrames
}

// findFrames finds the frames of runtimes in the stopped threads.
func (r *recorder) findFrames() error {
	c := r.copied
	m := &Moment{PID: r.pid, Threads: make([]MomentThread, len(c.threads)), copied: c, still: newStill(c.lead)}
	isAny := false
	for i, th := range c.threads {
		m.Threads[i].ID = th.id
		if !th.isStopped || th.isLeftOut || len(th.registers) == 0 {
			continue
		}
		isAny, m.Threads[i].IsStopped = true, true
		r.decode(th, &m.Threads[i].Registers)
	}
	if !isAny {
		return nil
	}
	r.runtimes.Find(m)
	m.still.end()
	r.found, r.stacks = m.Frames, map[int]*perfdata.RuntimeStack{}
	for i := range m.Threads {
		if th := &m.Threads[i]; th.Stack != nil {
			r.stacks[th.ID] = th.Stack
		}
	}
	return nil
}

// decode reads the general registers of a thread.
func (r *recorder) decode(th *tracee, to *sdk.Registers) {
	d := r.copied.description
	for i := range d.RegisterSets {
		if set := &d.RegisterSets[i]; set.Source == sdk.CoreNote && set.Type == ntPRSTATUS {
			set.Decode(th.registers[0].data, to)
		}
	}
}

// rawOf returns the raw data of the sample of a thread.
func (r *recorder) rawOf(th *tracee, name *threadName) []byte {
	wait := r.waitOf(th, name)
	stack := r.stacks[th.id]
	if stack == nil {
		return wait
	}
	r.rawStack = r.writer.Append(r.rawStack[:0], wait, stack, r.found)
	return r.rawStack
}
