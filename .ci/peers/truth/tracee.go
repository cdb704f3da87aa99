// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// tracee is a process that is executed instruction by instruction. It belongs to the
// thread of the operating system that started it.
type tracee struct {
	pid  int
	mem  *os.File
	regs unix.PtraceRegs
	cmd  *exec.Cmd
	// hasThreads says that threads which it starts are to be stepped, too. They are in born.
	hasThreads bool
	born       []*tracee
	mayWait    bool // the instruction that is being executed is a system call
}

// preserved are the DWARF numbers of registers that functions give back as they were (psABI
// 3.2.1): rbx, rbp, r12 to r15.
var preserved = [...]uint64{3, 6, 12, 13, 14, 15}

// prstatus is how registers are in a core.
var prstatus = func() *sdk.RegisterSet {
	d := x86_64.Description()
	return d.RegisterSet(sdk.CoreNote, "CORE", ntPrstatus)
}()

func (t *tracee) arch() string { return "x86_64" }

func (t *tracee) position() (pc, sp uint64) { return t.regs.Rip, t.regs.Rsp }

// maps is the text of /proc/PID/maps.
func (t *tracee) maps() (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", t.pid))
	return string(text), err
}

// registers has the registers before the next instruction.
func (t *tracee) registers() (r sdk.Registers) {
	var raw [prstatusSize]byte
	copy(raw[prReg:], unsafe.Slice((*byte)(unsafe.Pointer(&t.regs)), int(unsafe.Sizeof(t.regs))))
	prstatus.Decode(raw[:], &r)
	return r
}

func (t *tracee) kept() registers {
	r := &t.regs
	return registers{r.Rbx, r.Rbp, r.R12, r.R13, r.R14, r.R15}
}

// errEnded says that the process is there no more.
var errEnded = errors.New("it has ended")

// startTracee starts a program, which stands at its first instruction.
func startTracee(argv, env []string, dir string, hasThreads bool) (*tracee, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...) // start-up reads each variable
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := &tracee{pid: cmd.Process.Pid, cmd: cmd, hasThreads: hasThreads}
	if _, err := t.wait(); err != nil {
		return nil, err
	}
	var err error
	options := unix.PTRACE_O_EXITKILL
	if hasThreads {
		options |= unix.PTRACE_O_TRACECLONE
	}
	if err = unix.PtraceSetOptions(t.pid, options); err == nil {
		t.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", t.pid), os.O_RDWR, 0)
	}
	if err == nil {
		err = unix.PtraceGetRegs(t.pid, &t.regs)
	}
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// end kills the process.
func (t *tracee) end() {
	_ = syscall.Kill(t.pid, syscall.SIGKILL)
	for {
		if status, err := t.wait(); err != nil || status.Exited() || status.Signaled() {
			break
		}
	}
	if t.mem != nil {
		_ = t.mem.Close()
	}
	_ = t.cmd.Process.Release()
}

// wait waits for the process as the thread that this is, without telling Go's scheduler: it
// is a matter of microseconds.
func (t *tracee) wait() (unix.WaitStatus, error) {
	var status int32
	for {
		_, _, e := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(t.pid), uintptr(unsafe.Pointer(&status)), unix.WALL, 0, 0, 0)
		if e == 0 {
			return unix.WaitStatus(status), nil //nolint:gosec // its bits
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// step executes an instruction, with a signal that is to be delivered before it; 0: none.
// next is the signal that is to be delivered with the next step.
func (t *tracee) step(signal int) (next int, err error) {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(t.pid), 0, uintptr(signal), 0, 0); e != 0 {
		return 0, e
	}
	return t.arrive(patience)
}

// arrive waits for the instruction that is being executed. Of a process with threads it waits
// that long, and the error is errBlocked where that is not enough.
func (t *tracee) arrive(most time.Duration) (next int, err error) {
	for {
		status, err := t.waitFor(most)
		if err != nil {
			return 0, err
		}
		if !status.Stopped() {
			return 0, errEnded
		}
		if status.TrapCause() == unix.PTRACE_EVENT_CLONE { // within the system call
			if err := t.adopt(); err != nil {
				return 0, err
			}
			if err := unix.PtraceSingleStep(t.pid); err != nil {
				return 0, err
			}
			continue
		}
		if s := status.StopSignal(); s != syscall.SIGTRAP {
			next = int(s)
		}
		return next, t.readRegisters()
	}
}

func (t *tracee) waitFor(most time.Duration) (unix.WaitStatus, error) {
	if t.hasThreads && t.mayWait {
		return t.waitShort(most)
	}
	return t.wait()
}

func (t *tracee) readRegisters() error {
	if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGS, uintptr(t.pid), 0, uintptr(unsafe.Pointer(&t.regs)), 0, 0); e != 0 {
		return e
	}
	return nil
}

// read reads memory, as much as there is.
func (t *tracee) read(address uint64, buf []byte) int {
	n, _ := t.mem.ReadAt(buf, int64(address)) //nolint:gosec // its bits
	return max(n, 0)
}

func (t *tracee) word(address uint64) (uint64, bool) {
	var b [8]byte
	if t.read(address, b[:]) < len(b) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// runToEntry lets the dynamic linker do its work, and stops at the program's entry.
func (t *tracee) runToEntry() error {
	auxv, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", t.pid))
	if err != nil {
		return err
	}
	const atEntry = 9
	for ; len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == atEntry {
			return t.runTo(binary.LittleEndian.Uint64(auxv[8:]))
		}
	}
	return errors.New("the kernel says no entry")
}

// runTo executes until an instruction is about to be.
func (t *tracee) runTo(address uint64) error {
	var old [1]byte
	if t.read(address, old[:]) != 1 {
		return fmt.Errorf("no code at %#x", address)
	}
	if _, err := t.mem.WriteAt([]byte{0xcc}, int64(address)); err != nil { //nolint:gosec // its bits
		return err
	}
	if err := unix.PtraceCont(t.pid, 0); err != nil {
		return err
	}
	status, err := t.wait()
	if err != nil || !status.Stopped() || status.StopSignal() != syscall.SIGTRAP {
		return fmt.Errorf("it did not stop at %#x: %v %w", address, status, errEnded)
	}
	if _, err := t.mem.WriteAt(old[:], int64(address)); err != nil { //nolint:gosec // its bits
		return err
	}
	if err := t.readRegisters(); err != nil {
		return err
	}
	t.regs.Rip = address
	return unix.PtraceSetRegs(t.pid, &t.regs)
}

// catches reports whether the process has a handler of a signal.
func (t *tracee) catches(signal int) bool {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.pid))
	_, rest, _ := bytes.Cut(data, []byte("SigCgt:\t"))
	var mask uint64
	_, _ = fmt.Sscanf(string(rest[:min(16, len(rest))]), "%x", &mask)
	return mask>>(signal-1)&1 == 1
}

// hasDynamicLinker reports whether a file needs one.
func hasDynamicLinker(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
