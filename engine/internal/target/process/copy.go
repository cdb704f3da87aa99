// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/sdk"
)

// piece is a copied range of the process's memory.
type piece struct {
	address uint64
	data    []byte
}

func (p *piece) end() uint64 { return p.address + uint64(len(p.data)) }

// copied is the copy of a process: registers and parts of its memory.
type copied struct {
	pid, lead   int  // lead is a live thread: the thread with the process's ID may have ended
	isLeadGone  bool // lead ended while memory was copied through it, so that some is missing
	machine     machine
	description *sdk.Description // nil if no architecture reads its registers
	undescribed error            // why there is none, for elfcore to report
	auxv        []byte
	rawMaps     []byte
	maps        []mapping
	pieces      []piece
	descriptors []descriptor // of the lists of JIT code
	threads     []*tracee
	buffer      buffer
	hasWaits    bool                          // of a sample: the memory of locks is copied, too
	isSample    bool                          // only the general registers are read
	wanted      func(id int, state byte) bool // as of tracer
	whileStill  func() error                  // called once the threads are copied, before they go on; nil: nothing is
	opened      *Target                       // by whileStill
	member      *Member                       // of processes that are stopped together; nil: it is by itself
	stoppedAt   time.Time
	stopped     time.Duration // from the first thread's stop to the last one's release
	longest     time.Duration // the longest stop of one thread
}

// errChanged means that the process executed another program while it was being read.
var errChanged = errors.New("it executes one program after another")

// dir returns the folder in /proc of the process's memory. If the thread with the process's ID
// has ended and others go on, the folder of the process is empty, and that of a thread is not.
func (c *copied) dir() string {
	if c.lead == c.pid {
		return fmt.Sprintf("/proc/%d", c.pid)
	}
	return fmt.Sprintf("/proc/%d/task/%d", c.pid, c.lead)
}

const (
	// maxHeaders bounds the files whose ELF headers are copied.
	maxHeaders = 1 << 15
	// headerSize is the size of the part at a file's start that is copied, as the kernel
	// puts it into cores: it has the ELF header, the program headers and the build ID.
	headerSize = 4096
	// maxVDSO bounds the vDSO, which has a few pages.
	maxVDSO = 1 << 20
	// maxLost bounds the copied code whose files cannot be opened.
	maxLost = 64 << 20
)

// prepare reads, while the process goes on, the state that does not change as long as it
// executes the same program and keeps its mappings.
func (c *copied) prepare(isLost func(*mapping) bool) error {
	var err error
	if c.auxv, err = readFile(c.dir()+"/auxv", nil); err != nil {
		return err
	}
	if c.rawMaps, err = readFile(c.dir()+"/maps", c.rawMaps); err != nil {
		return err
	}
	if c.maps, err = parseMaps(c.rawMaps); err != nil {
		return fmt.Errorf("%s/maps: %w", c.dir(), err)
	}
	if len(c.maps) == 0 {
		return errChanged // the thread has just ended, as all do except the one that calls execve
	}
	c.pieces = c.pieces[:0]
	c.copyCode(nil, isLost)
	threads, err := threadsOf(c.pid)
	if err != nil {
		return err
	}
	c.buffer.prepare(len(c.rawMaps) + maxRegisters + min(usualBuffer+len(threads)*usualThread, maxStacks))
	return nil
}

// copyCode copies the memory that identifies the mapped code objects: their headers, and the
// vDSO. Mappings that are among known are not copied again.
func (c *copied) copyCode(known []mapping, isLost func(*mapping) bool) {
	type file struct {
		device string
		inode  uint64
	}
	hasCode := map[file]bool{}
	for i := range c.maps {
		m := &c.maps[i]
		if m.flags&elf.PF_X == 0 {
			continue
		}
		hasCode[file{m.device, m.inode}] = true
		// Executable memory may have replaced the file's code behind a part of the file.
		if i > 0 && c.maps[i-1].end == m.start {
			hasCode[file{c.maps[i-1].device, c.maps[i-1].inode}] = true
		}
	}
	headers, budget := 0, uint64(maxLost)
	for i := range c.maps {
		m := &c.maps[i]
		if old := find(known, m.start); m.flags&elf.PF_R == 0 || old != nil && *old == *m {
			continue
		}
		size := m.end - m.start
		switch isCode := m.isOfFile() && hasCode[file{m.device, m.inode}]; {
		case m.path == "[vdso]" && size <= maxVDSO:
			c.copy(m.start, m.end)
		case isCode && size <= budget && isLost(m):
			budget -= size
			c.copy(m.start, m.end)
		case isCode && c.mayBegin(i) && headers < maxHeaders:
			headers++
			c.copy(m.start, m.start+min(size, headerSize))
		}
	}
}

// mayBegin reports whether a mapping may begin with the header of a code object: it is of a
// file's start, or of its middle without another mapping of the file before it.
func (c *copied) mayBegin(i int) bool {
	m := &c.maps[i]
	return m.offset == 0 || i == 0 || c.maps[i-1].end != m.start || c.maps[i-1].path != m.path
}

// copy copies a range of memory as far as it can be read.
func (c *copied) copy(start, end uint64) { c.copyAll([]span{{start, end}}) }

// maxVector is the number of ranges of memory that the kernel copies at once (UIO_MAXIOV).
const maxVector = 1024

// copyAll copies ranges of memory, each as far as it can be read, with few system calls as the
// threads stand still meanwhile.
func (c *copied) copyAll(spans []span) {
	remote := make([]unix.RemoteIovec, 0, min(len(spans), maxVector))
	for len(spans) > 0 {
		size := 0
		remote = remote[:0]
		for _, s := range spans[:min(len(spans), maxVector)] {
			n := int(s.end - s.start) //nolint:gosec // bounded by the callers
			remote = append(remote, unix.RemoteIovec{Base: uintptr(s.start), Len: n})
			size += n
		}
		buf := c.buffer.take(size)
		local := unix.Iovec{Base: &buf[0]}
		local.SetLen(len(buf))
		n, err := unix.ProcessVMReadv(c.lead, []unix.Iovec{local}, remote, 0)
		if err != nil {
			n = 0
			c.isLeadGone = c.isLeadGone || errors.Is(err, unix.ESRCH)
		}
		// The kernel stops at the first byte that it cannot read.
		done := 0
		for done < len(remote) && n >= remote[done].Len {
			c.keep(spans[done].start, buf[:remote[done].Len])
			n -= remote[done].Len
			buf = buf[remote[done].Len:]
			done++
		}
		if done < len(remote) {
			c.keep(spans[done].start, buf[:n])
			c.buffer.putBack(len(buf) - n)
			done++
		}
		spans = spans[done:]
	}
}

// keep adds a copied range, unless it is empty.
func (c *copied) keep(start uint64, data []byte) {
	if len(data) > 0 {
		c.pieces = append(c.pieces, piece{start, data})
	}
}

// Bounds of the wait for threads to stop. Most stop within microseconds. One in an
// uninterruptible wait stops after it, and one in state R when it is scheduled next: that is
// certain to come, so it is waited for longer. A moment of a profile can do without it.
const (
	stopDeadline = 100 * time.Millisecond
	stopPatience = 2 * time.Second
)

// copyStopped stops the threads, copies, and releases them. It executes on its own thread, which
// ends with it: whatever happens, the kernel then releases all threads that are still seized.
func (c *copied) copyStopped(isLost func(*mapping) bool) (err error) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it is never unlocked, so that the thread ends
		if unix.Gettid() != os.Getpid() {
			done <- c.trace(isLost)
			return
		}
		// The first thread of a process does not end with its goroutine. While this
		// goroutine has it, another goroutine gets another thread.
		inner := make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			inner <- c.trace(isLost)
		}()
		done <- <-inner
		runtime.UnlockOSThread()
	}()
	return <-done
}

// trace is copyStopped on the calling thread.
func (c *copied) trace(isLost func(*mapping) bool) error {
	t := &tracer{pid: c.pid, deadline: stopDeadline, patience: stopPatience, isSample: c.isSample, wanted: c.wanted}
	done := make(chan struct{})
	go t.reap(done)
	err := func() error {
		defer close(done)
		defer t.release()
		if err := t.stop(); err != nil {
			return err
		}
		c.member.isStopped()
		if err := c.copyThreads(t, isLost); err != nil || c.whileStill == nil {
			return err
		}
		c.stoppedAt, c.threads = t.begun, t.threads
		return c.whileStill()
	}()
	c.stoppedAt, c.longest, c.threads = t.begun, t.longest, t.threads
	if !t.begun.IsZero() {
		c.stopped = time.Since(t.begun)
	}
	return err
}

// copyThreads copies the registers and stacks of stopped threads.
func (c *copied) copyThreads(t *tracer, isLost func(*mapping) bool) error {
	i := slices.IndexFunc(t.threads, func(th *tracee) bool { return th.isStopped })
	if i < 0 {
		if slices.ContainsFunc(t.threads, func(th *tracee) bool { return th.isLeftOut }) {
			return nil
		}
		if slices.ContainsFunc(t.threads, func(th *tracee) bool { return !th.isGone }) {
			return fmt.Errorf("none of its %d threads stopped within %v: %v", len(t.threads), t.patience, t.threads[0].late)
		}
		return ended(c.pid)
	}
	c.lead = t.threads[i].id
	auxv, err := readFile(c.dir()+"/auxv", make([]byte, 0, 1024))
	if err != nil {
		return err
	}
	if !bytes.Equal(auxv, c.auxv) {
		return errChanged // the vector has random addresses: it is another program
	}
	raw, err := readFile(c.dir()+"/maps", c.buffer.take(len(c.rawMaps)+16<<10))
	if err != nil {
		return err
	}
	if before := c.maps; !bytes.Equal(raw, c.rawMaps) {
		if c.maps, err = parseMaps(raw); err != nil {
			return fmt.Errorf("%s/maps: %w", c.dir(), err)
		}
		c.rawMaps = slices.Clone(raw) // raw is in the buffer, which is reused
		c.dropChanged(before)
		c.copyCode(before, isLost)
	}
	if c.isLeadGone {
		c.isLeadGone = false
		c.pieces = c.pieces[:0]
		c.copyCode(nil, isLost)
	}
	if c.description == nil {
		c.readStatusRegisters(t)
		return nil
	}
	c.copyStacks(c.readRegisters(t))
	if !c.isSample {
		c.copyWindows(t)
	}
	if !c.isSample || c.hasWaits {
		c.copyLocks(t)
	}
	c.copyRegistered()
	return nil
}

// readable returns how many bytes the readable mappings have.
func (c *copied) readable() (n uint64) {
	for i := range c.maps {
		if m := &c.maps[i]; m.flags&elf.PF_R != 0 {
			n += m.end - m.start
		}
	}
	return n
}

// dropChanged drops the pieces of mappings that have changed.
func (c *copied) dropChanged(before []mapping) {
	c.pieces = slices.DeleteFunc(c.pieces, func(p piece) bool {
		old, now := find(before, p.address), find(c.maps, p.address)
		return old == nil || now == nil || *old != *now
	})
}

// ntPRSTATUS is the note of the general registers, and their set (include/uapi/linux/elf.h).
const ntPRSTATUS = 1

// maxRegisters bounds a set of registers: XSAVE's has 11 kB with AMX.
const maxRegisters = 64 << 10

// readRegisters reads the register sets of the description, and returns the stack pointers. Few
// other registers are decoded while the threads stand still.
func (c *copied) readRegisters(t *tracer) (pointers []uint64) {
	d := c.description
	pointers = make([]uint64, 0, len(t.threads))
	for _, th := range t.threads {
		if !th.isStopped {
			continue
		}
		th.registers = make([]registerNote, 0, len(d.RegisterSets))
		for i := range d.RegisterSets {
			set := &d.RegisterSets[i]
			if set.Source != sdk.CoreNote || c.isSample && set.Type != ntPRSTATUS {
				continue
			}
			n, ok := c.readRegisterSet(th, set.Owner, set.Type)
			if !ok {
				continue
			}
			th.registers = append(th.registers, n)
			if sp, ok := field(set, n.data, d.SP); ok {
				pointers = append(pointers, sp)
			}
		}
	}
	return pointers
}

// field returns a register of a set of registers, if the set has it.
func field(set *sdk.RegisterSet, data []byte, number uint32) (value uint64, ok bool) {
	for i := range set.Fields {
		f := &set.Fields[i]
		if f.Register != number || f.RegisterOffset != 0 || uint64(f.Offset)+uint64(f.Size) > uint64(len(data)) {
			continue
		}
		switch b := data[f.Offset:]; f.Size {
		case 8:
			return order.Uint64(b), true
		case 4:
			return uint64(order.Uint32(b)), true
		}
	}
	return 0, false
}

// readRegisterSet reads a set of registers of a stopped thread.
func (c *copied) readRegisterSet(th *tracee, owner string, typ uint32) (n registerNote, ok bool) {
	buf := c.buffer.take(maxRegisters)
	size := th.readRegisters(typ, buf)
	c.buffer.putBack(maxRegisters - size)
	if size == 0 {
		return n, false
	}
	n = registerNote{owner, typ, buf[:size:size]}
	if typ == ntPRSTATUS {
		n.data = c.prStatus(th.id, n.data)
	}
	return n, true
}

// readStatusRegisters reads the general registers of a machine without a description: elfcore
// knows the place of the program counter for many.
func (c *copied) readStatusRegisters(t *tracer) {
	for _, th := range t.threads {
		if !th.isStopped {
			continue
		}
		if n, ok := c.readRegisterSet(th, "CORE", ntPRSTATUS); ok {
			th.registers = append(th.registers, n)
		}
	}
}
