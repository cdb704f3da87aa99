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

// A piece is bytes of the process's memory.
type piece struct {
	address uint64
	data    []byte
}

func (p *piece) end() uint64 { return p.address + uint64(len(p.data)) }

// A copied is what was copied of a process.
type copied struct {
	pid, lead   int // lead is a thread that lives: the one of the process's ID may have ended
	machine     machine
	description *sdk.Description // nil: nobody reads its registers
	auxv        []byte
	rawMaps     []byte
	maps        []mapping
	pieces      []piece
	threads     []*tracee
	at          time.Time     // it was stopped
	stopped     time.Duration // from the first thread's stop to the last one's release
	longest     time.Duration // that one thread was stopped
}

// errChanged says that the process executed another program while it was being read.
var errChanged = errors.New("it executes one program after another")

// dir is the folder in /proc that tells of the process's memory. Where the thread of the
// process's ID has ended and others go on, the folder of the process is empty.
func (c *copied) dir() string {
	if c.lead == c.pid {
		return fmt.Sprintf("/proc/%d", c.pid)
	}
	return fmt.Sprintf("/proc/%d/task/%d", c.pid, c.lead)
}

const (
	// maxHeaders bounds the files whose ELF headers are copied.
	maxHeaders = 1 << 15
	// headerSize is what is copied of a file's beginning, as the kernel puts it into
	// cores: the ELF header, the program headers and the build ID are there.
	headerSize = 4096
	// maxVDSO bounds the vDSO, which has a few pages.
	maxVDSO = 1 << 20
	// maxLost bounds what is copied of code whose files cannot be opened.
	maxLost = 64 << 20
)

// prepare reads what does not change as long as the process executes the same program and
// keeps its mappings. The process goes on meanwhile.
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
		return errChanged // the thread has just ended, as all do but the one that calls execve
	}
	c.pieces = c.pieces[:0]
	c.copyCode(nil, isLost)
	return nil
}

// copyCode copies what tells which code objects are mapped: their headers, and the vDSO.
// What was there already when known was read is not copied again.
func (c *copied) copyCode(known []mapping, isLost func(*mapping) bool) {
	type file struct {
		device string
		inode  uint64
	}
	hasCode := map[file]bool{}
	for i := range c.maps {
		if m := &c.maps[i]; m.isOfFile() && m.flags&elf.PF_X != 0 {
			hasCode[file{m.device, m.inode}] = true
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
		case isCode && m.offset == 0 && headers < maxHeaders:
			headers++
			c.copy(m.start, m.start+min(size, headerSize))
		}
	}
}

// copy copies memory as far as it can be read.
func (c *copied) copy(start, end uint64) {
	buf := make([]byte, end-start)
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf))
	remote := unix.RemoteIovec{Base: uintptr(start), Len: len(buf)}
	n, err := unix.ProcessVMReadv(c.lead, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	if err == nil && n > 0 {
		c.pieces = append(c.pieces, piece{start, buf[:n]})
	}
}

// stopDeadline is how long threads are waited for. A runnable thread stops when it is next
// executed; one in an uninterruptible wait may not for hours, and the others stand still.
const stopDeadline = 100 * time.Millisecond

// copyStopped stops the threads, copies, and lets them go. It is executed by a thread of
// its own, which ends with it: whatever happens here, the kernel lets all threads go that
// are still seized then.
func (c *copied) copyStopped(isLost func(*mapping) bool) (err error) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it is never unlocked, so that the thread ends
		if unix.Gettid() != os.Getpid() {
			done <- c.trace(isLost)
			return
		}
		// The first thread of a process does not end. While this goroutine has it,
		// another one gets another.
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

// trace is copyStopped for the thread that it is called by.
func (c *copied) trace(isLost func(*mapping) bool) error {
	t := &tracer{pid: c.pid, deadline: stopDeadline}
	done := make(chan struct{})
	go t.reap(done)
	err := func() error {
		defer close(done)
		defer t.release()
		if err := t.stop(); err != nil {
			return err
		}
		return c.copyThreads(t, isLost)
	}()
	c.at, c.longest, c.threads = t.begun, t.longest, t.threads
	if !t.begun.IsZero() {
		c.stopped = time.Since(t.begun)
	}
	return err
}

// copyThreads copies the registers and stacks of stopped threads.
func (c *copied) copyThreads(t *tracer, isLost func(*mapping) bool) error {
	i := slices.IndexFunc(t.threads, func(th *tracee) bool { return th.isStopped })
	if i < 0 {
		if slices.ContainsFunc(t.threads, func(th *tracee) bool { return !th.isGone }) {
			return fmt.Errorf("process %d: none of its %d threads stopped within %v: they are in uninterruptible waits", c.pid, len(t.threads), t.deadline)
		}
		return ended(c.pid)
	}
	c.lead = t.threads[i].id
	auxv, err := readFile(c.dir()+"/auxv", make([]byte, 0, 1024))
	if err != nil {
		return err
	}
	if !bytes.Equal(auxv, c.auxv) {
		return errChanged // its addresses are random: it is another program
	}
	raw, err := readFile(c.dir()+"/maps", make([]byte, 0, len(c.rawMaps)+16<<10))
	if err != nil {
		return err
	}
	if before := c.maps; !bytes.Equal(raw, c.rawMaps) {
		if c.maps, err = parseMaps(raw); err != nil {
			return fmt.Errorf("%s/maps: %w", c.dir(), err)
		}
		c.dropChanged(before)
		c.copyCode(before, isLost)
	}
	if c.description == nil {
		c.readStatusRegisters(t)
		return nil
	}
	for _, r := range c.stackRanges(c.readRegisters(t)) {
		c.copy(r.start, r.end)
	}
	return nil
}

// dropChanged forgets what was copied of mappings that are other ones now.
func (c *copied) dropChanged(before []mapping) {
	c.pieces = slices.DeleteFunc(c.pieces, func(p piece) bool {
		old, now := find(before, p.address), find(c.maps, p.address)
		return old == nil || now == nil || *old != *now
	})
}

// ntPRSTATUS is the note of the general registers, and their set (include/uapi/linux/elf.h).
const ntPRSTATUS = 1

// maxRegisters bounds a set of registers. XSAVE's has 11 kB with AMX.
const maxRegisters = 64 << 10

// readRegisters reads the register sets that the description knows, and returns the stack
// pointers.
func (c *copied) readRegisters(t *tracer) (pointers []uint64) {
	buf := make([]byte, maxRegisters)
	d := c.description
	for _, th := range t.threads {
		if !th.isStopped {
			continue
		}
		var registers sdk.Registers
		for i := range d.RegisterSets {
			set := &d.RegisterSets[i]
			if set.Source != sdk.CoreNote {
				continue
			}
			data, ok := th.readRegisters(set.Type, buf)
			if !ok {
				continue
			}
			n := registerNote{set.Owner, set.Type, data}
			if set.Type == ntPRSTATUS {
				n.data = c.prStatus(th.id, data)
			}
			set.Decode(n.data, &registers)
			th.registers = append(th.registers, n)
		}
		if sp, ok := registers.Uint64(d.SP, d.ByteOrder); ok {
			pointers = append(pointers, sp)
		}
	}
	return pointers
}

// readStatusRegisters reads the general registers of a machine that nobody here
// describes: elfcore knows of many where the program counter is.
func (c *copied) readStatusRegisters(t *tracer) {
	buf := make([]byte, maxRegisters)
	for _, th := range t.threads {
		if data, ok := th.readRegisters(ntPRSTATUS, buf); th.isStopped && ok {
			th.registers = append(th.registers, registerNote{"CORE", ntPRSTATUS, c.prStatus(th.id, data)})
		}
	}
}
