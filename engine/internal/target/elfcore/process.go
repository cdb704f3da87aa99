// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// The notes that Linux writes under the owner "CORE" (include/uapi/linux/elf.h).
const (
	coreOwner  = "CORE"
	ntPRSTATUS = 1
	ntPRPSINFO = 3
	ntAUXV     = 6
	ntFILE     = 0x46494c45
	ntSIGINFO  = 0x53494749
)

// The entries of NT_AUXV with addresses of code (include/uapi/linux/auxvec.h).
const (
	atPHDR        = 3
	atPHENT       = 4
	atPHNUM       = 5
	atPageSize    = 6
	atBase        = 7
	atEntry       = 9
	atExecFn      = 31
	atSysinfoEHDR = 33
)

// maxNoteBytes bounds the notes that are kept for plugins.
const maxNoteBytes = 256 << 20

// noThreads is the problem of a core without threads.
const noThreads = "no NT_PRSTATUS note: the core names no threads"

// process is the state of the process that the notes have.
type process struct {
	pid       int64
	name      string // the first 15 bytes of the main thread's name
	command   string // the first 79 bytes of the command line
	hasInfo   bool
	auxv      map[uint64]uint64
	files     *fileRanges // nil without NT_FILE
	threads   []*trace.Thread
	signal    int
	code      int32 // si_code of signal
	hasCode   bool
	sender    *trace.Sender
	call      *trace.SystemCall
	user      *uint32
	fault     uint64
	hasFault  bool
	unclaimed []sdk.Note
}

// thread is a thread while its notes are read.
type thread struct {
	*trace.Thread
	lwp          int64
	status       note
	siginfo      []byte
	isByDebugger bool // a debugger wrote it: NT_PRPSINFO comes before its NT_PRSTATUS
}

// readProcess reads the notes of a core. NT_PRSTATUS begins a thread, and the
// notes up to the next NT_PRSTATUS are of that thread. d is nil if the registers
// cannot be read, for the reason in unread.
func readProcess(h *coreHeader, notes []note, d *sdk.Description, unread string) (p process, problems []string) {
	var threads []*thread
	var current *thread
	var kept int
	var dropped int
	for _, nt := range notes {
		var set *sdk.RegisterSet
		if d != nil {
			set = d.RegisterSet(sdk.CoreNote, nt.owner, nt.typ)
		}
		isStatus := nt.owner == coreOwner && nt.typ == ntPRSTATUS
		if isStatus {
			current = &thread{Thread: &trace.Thread{}, status: nt, isByDebugger: p.hasInfo && len(threads) == 0}
			if problem := h.readStatus(current); problem != "" {
				problems = append(problems, problem)
			}
			threads = append(threads, current)
		}
		switch {
		case set != nil && current != nil:
			set.Decode(nt.data, &current.Registers)
		case isStatus:
		case nt.owner != coreOwner || !p.readNote(h, nt, current, &problems):
			if kept += len(nt.data); kept > maxNoteBytes {
				kept -= len(nt.data)
				dropped++
				continue
			}
			p.unclaimed = append(p.unclaimed, sdk.Note{Owner: nt.owner, Type: nt.typ, Data: bytes.Clone(nt.data)})
		}
	}
	if dropped > 0 {
		problems = append(problems, fmt.Sprintf("%d notes that no reader of cores owns are left out: together with the others they have more than %d bytes", dropped, maxNoteBytes))
	}
	if len(threads) == 0 {
		problems = append(problems, noThreads)
	}
	if unplaced := p.finish(h, threads, d, unread); unplaced != "" {
		problems = append(problems, unplaced)
	}
	return p, problems
}

// readNote reads a note of the owner "CORE" that is no register set. It returns
// false for a note that it does not know. The first of the notes that a process has
// once counts.
func (p *process) readNote(h *coreHeader, nt note, current *thread, problems *[]string) bool {
	switch nt.typ {
	case ntPRPSINFO:
		if !p.hasInfo {
			p.hasInfo = true
			p.pid, p.name, p.command = h.readInfo(nt.data)
			p.user = h.readUser(nt.data)
		}
	case ntSIGINFO:
		// The kernel writes one, for the first thread, which got the signal. gdb
		// writes one for each thread.
		if current != nil && current.siginfo == nil {
			current.siginfo = nt.data
		}
	case ntAUXV:
		if p.auxv == nil {
			p.auxv = h.readAuxv(nt.data)
		}
	case ntFILE:
		if p.files == nil {
			var found []string
			p.files, found = readFileNote(h.numbers, nt.data)
			*problems = append(*problems, found...)
		}
	default:
		return false
	}
	return true
}

// readInfo reads the process ID, the name and the command line of NT_PRPSINFO, struct elf_prpsinfo:
// four characters, pr_flag (a word, aligned), pr_uid and pr_gid, pr_pid, three
// more IDs, pr_fname (16 bytes), pr_psargs (80 bytes). User IDs have 4 bytes,
// but 2 on the oldest 32-bit architectures (i386, ARM, m68k, SPARC): the size
// of the record tells.
func (h *coreHeader) readInfo(data []byte) (pid int64, name, command string) {
	ids := h.offset(12, 24)
	if !h.is64 && len(data) >= 128 {
		ids = 16
	}
	if len(data) < ids+32 {
		return 0, "", ""
	}
	pid = int64(int32(h.order.Uint32(data[ids:])))
	return pid, text(data[ids+16 : ids+32]), strings.TrimRight(text(data[ids+32:min(ids+112, len(data))]), " ")
}

// readUser reads pr_uid of NT_PRPSINFO, right before pr_gid and pr_pid; nil if the note is too
// short.
func (h *coreHeader) readUser(data []byte) *uint32 {
	offset := h.offset(12, 24) - 8
	var user uint32
	switch {
	case !h.is64 && len(data) >= 128:
		user = h.order.Uint32(data[8:])
	case len(data) < offset+8:
		return nil
	case !h.is64:
		user = uint32(h.order.Uint16(data[8:]))
	default:
		user = h.order.Uint32(data[offset:])
	}
	return &user
}

// text returns b up to its first NUL, if any.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// readAuxv reads NT_AUXV: pairs of words, type and value, up to AT_NULL. The
// first value of a type stays.
func (h *coreHeader) readAuxv(data []byte) map[uint64]uint64 {
	auxv := map[uint64]uint64{}
	size := h.size()
	for len(data) >= 2*size {
		typ, value := h.word(data), h.word(data[size:])
		if typ == 0 {
			break
		}
		// Types are small numbers; a bound keeps the map small for a hostile vector.
		if _, ok := auxv[typ]; !ok && typ < 1024 {
			auxv[typ] = value
		}
		data = data[2*size:]
	}
	return auxv
}

// finish finds the thread that crashed, and completes the threads' names and problems. It
// returns why the PC of a thread that no architecture reads is not known.
//
// The kernel writes the thread that took the fatal signal first, and the number of
// that signal into pr_cursig of every thread: only the first thread's counts. It
// dumps only for signals whose default action is to dump.
//
// gdb (gcore, generate-core-file) writes the current thread first, unless
// another thread has stopped for a signal that would be passed on, and writes the
// current thread's last stop signal into all pr_cursig: 0 after attaching (and
// NT_SIGINFO with the SIGSTOP of the attaching), SIGINT after Ctrl-C, SIGTRAP at
// a breakpoint, the fatal signal if the program has got it and would die of it
// next. Only the last of these is a crash. SIGTRAP is a crash if the kernel wrote
// the core; if a debugger did, the signal is the debugger's. The kernel writes
// NT_PRPSINFO behind the first NT_PRSTATUS, gdb before it.
func (p *process) finish(h *coreHeader, threads []*thread, d *sdk.Description, unread string) (unplaced string) {
	for i, t := range threads {
		if i == 0 {
			p.signal = t.Signal
			if !dumps(h.machine, t.Signal) || t.isByDebugger && t.Signal == sigTRAP {
				p.signal = 0
			}
			t.Crashed = p.signal != 0
			if t.Crashed {
				p.readSignalInfo(h, t.siginfo, t.Signal)
			}
			if reason, ok := target.StopOfSignal(h.machine, t.Signal); ok && p.hasFault {
				t.Stop = &trace.Stop{Reason: reason.Name}
				if reason.HasAddress {
					t.Stop.Address, t.Stop.HasAddress = p.fault, true
				}
			}
		}
		if !t.Crashed {
			t.Signal = 0
		}
		t.Handle = uint64(i)
		if p.hasInfo && t.ID != "" && t.lwp == p.pid {
			t.Name = p.name
		}
		if d != nil {
			t.Arch = d.Name
			if _, ok := t.Registers.Get(d.PC); !ok && t.Problem == "" && d.PC != sdk.NoRegister {
				t.Problem = withoutPC(d, &t.status)
			}
		} else if t.Arch = h.arch(); t.Problem == "" {
			t.Unread = unread
			if problem := h.readPC(t); unplaced == "" {
				unplaced = problem
			}
		}
		p.threads = append(p.threads, t.Thread)
	}
	return unplaced
}

// readSignalInfo reads NT_SIGINFO, unless it is of another signal.
func (p *process) readSignalInfo(h *coreHeader, data []byte, signal int) {
	x, ok := target.ReadSignalInfo(data, h.machine, h.order, h.size())
	if !ok || x.Signal != signal {
		return
	}
	p.fault, p.hasFault, p.code, p.hasCode, p.sender, p.call = x.Address, x.HasAddress, x.Code, true, x.Sender, x.SystemCall
}

// withoutPC returns why the registers of a thread have no program counter.
func withoutPC(d *sdk.Description, status *note) string {
	if d.RegisterSet(sdk.CoreNote, coreOwner, ntPRSTATUS) == nil {
		return fmt.Sprintf("the description of %s has no register set for NT_PRSTATUS: a core note of %s, type %d", d.Name, coreOwner, ntPRSTATUS)
	}
	return fmt.Sprintf("NT_PRSTATUS at offset %#x has %d bytes, which do not reach to the program counter", status.offset, len(status.data))
}

// Signals that have the same number on every machine.
const (
	sigQUIT = 3
	sigILL  = 4
	sigTRAP = 5
	sigABRT = 6
	sigFPE  = 8
	sigSEGV = 11
)

// dumps reports whether the default action of a signal is to write a core
// (signal(7)): SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGSEGV everywhere,
// and SIGBUS, SIGSYS, SIGXCPU, SIGXFSZ under the numbers of the architecture.
func dumps(machine uint16, signal int) bool {
	switch signal {
	case sigQUIT, sigILL, sigTRAP, sigABRT, sigFPE, sigSEGV:
		return true
	}
	numbers := []int{7, 24, 25, 31}
	switch elf.Machine(machine) {
	case elf.EM_MIPS:
		numbers = []int{10, 12, 30, 31}
	case elf.EM_SPARC, elf.EM_SPARC32PLUS, elf.EM_SPARCV9, elf.EM_ALPHA, elf.EM_ALPHA_STD:
		numbers = []int{10, 12, 24, 25}
	case elf.EM_PARISC:
		numbers = []int{10, 12, 31, 30}
	}
	return slices.Contains(numbers, signal)
}
