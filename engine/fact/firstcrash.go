// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A FirstCrash is the crash that a signal handler caught: what the thread did next is the
// handler's, to the end of the process. The kernel left on the handler's stack why it called it.
type FirstCrash struct {
	Signal int    // its number
	Name   string // as reports have it: "SIGSEGV / SEGV_MAPERR"
	// Address is what was accessed, if HasAddress.
	Address    uint64
	HasAddress bool
	Sender     *target.Sender // nil where no process sent the signal
	// PC is the instruction that was interrupted, and Frame the index of its frame among
	// the physical ones of the stack.
	PC    uint64
	Frame int
	// Handler is the function that the kernel called, or its module and offset.
	Handler string

	info    target.SignalInfo
	hasInfo bool // else the registers alone say what happened
}

// FindFirst finds the first crash in the stack of a thread; nil where no handler of one
// is under way there.
func FindFirst(ctx context.Context, p *walk.Process, s *walk.Stack) *FirstCrash {
	if !slices.ContainsFunc(s.Frames, func(f walk.Frame) bool { return f.SignalFrame }) {
		return nil
	}
	return newCrash(ctx, p, s.Thread).first
}

// caught are the signals whose handlers catch crashes.
var caught = []string{"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP"}

// findFirst finds the first crash: the outermost one that a fault of the processor or
// abort() caused, or else one by a signal that a process sent.
func (c *crash) findFirst() (first *FirstCrash) {
	if c.machine == nil || c.machine.SignalFrame == nil || c.thread.Wave != nil {
		return nil
	}
	for i := len(c.stack.Frames) - 2; i > 0; i-- {
		if !c.stack.Frames[i].SignalFrame {
			continue
		}
		x := c.caughtAt(i)
		switch {
		case x == nil:
		case x.Sender == nil || target.SignalName(c.process.Info().Machine, x.Signal) == "SIGABRT":
			return x
		case first == nil:
			first = x
		}
	}
	return first
}

// caughtAt is the crash whose signal frame is one of the stack; nil where its signal is not
// one of a crash.
func (c *crash) caughtAt(i int) *FirstCrash {
	a, ok := c.activation(i)
	if !ok {
		return nil
	}
	sp, err := a.Value(uint64(c.machine.SP))
	if err != nil {
		return nil
	}
	x := &FirstCrash{PC: c.stack.Frames[i+1].PC, Frame: i + 1, Handler: c.functionAt(i - 1)}
	trap, hasTrap := c.trapAt(sp)
	if info, ok := c.signalInfo(sp); ok && c.agrees(&info, trap, hasTrap, sp) {
		x.info, x.hasInfo = info, true
	} else if info, ok = c.trapInfo(trap, hasTrap, sp); ok {
		x.info = info
		if !c.behind(x).isCause() {
			return nil
		}
	}
	name := target.SignalName(c.process.Info().Machine, x.info.Signal)
	if !slices.Contains(caught, name) {
		return nil
	}
	x.Signal, x.Name, x.Sender = x.info.Signal, target.SignalCrash(name, x.info.Code), x.info.Sender
	x.Address, x.HasAddress = x.info.Address, x.info.HasAddress
	return x
}

// activation is the frame of the stack with an index, which can be asked for registers.
func (c *crash) activation(i int) (walk.Activation, bool) {
	for j := min(i, len(c.frames)-1); j >= 0; j-- {
		if c.frames[j].Index() == c.frame+i {
			return c.frames[j], true
		}
	}
	return walk.Activation{}, false
}

// signalInfo reads the siginfo_t of a signal frame.
func (c *crash) signalInfo(sp uint64) (x target.SignalInfo, ok bool) {
	b := make([]byte, target.SignalInfoSize)
	n, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, sp+uint64(c.machine.SignalFrame.Info), b)
	if n < len(b) {
		return x, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if c.order == sdk.BigEndian {
		order = binary.BigEndian
	}
	return target.ReadSignalInfo(b, c.process.Info().Machine, order, c.wordSize())
}

// agrees says whether a siginfo_t is one: the kernel leaves out that of a handler that did
// not ask for it, and its place has then what was there before. It must be well formed, and
// that of a fault must not contradict the exception and the address, which are always there.
func (c *crash) agrees(x *target.SignalInfo, trap sdk.Trap, hasTrap bool, sp uint64) bool {
	name := target.SignalName(c.process.Info().Machine, x.Signal)
	if name == "" || x.Error != 0 || x.Code != target.SignalFromUser && target.SignalCode(name, x.Code) == "" {
		return false
	}
	if x.Sender != nil {
		return x.Sender.ID >= 0
	}
	if !hasTrap || name == "SIGTRAP" || !slices.Contains(caught, name) {
		return true
	}
	if !trap.HasAddress {
		return int(trap.Signal) == x.Signal
	}
	address, ok := c.word(sp + uint64(c.machine.SignalFrame.Address))
	return x.HasAddress && ok && c.untagged(address) == c.untagged(x.Address)
}

// trapAt is the exception of the processor that a signal frame has; ok is false where it has
// none, or none that becomes a signal.
func (c *crash) trapAt(sp uint64) (t sdk.Trap, ok bool) {
	s := c.machine.SignalFrame
	if s.Trap == 0 {
		return t, false
	}
	at := sp + uint64(s.Trap)
	if s.TrapRecord != 0 {
		if at, ok = c.record(at, s.TrapRecord); !ok {
			return t, false
		}
	}
	word, ok := c.word(at)
	for _, t := range s.Traps {
		if ok && word>>s.TrapShift == uint64(t.Number) {
			return t, true
		}
	}
	return t, false
}

// maxRecords bounds the records of a signal frame.
const maxRecords = 64

// record finds the contents of a record of a signal frame by its magic number.
func (c *crash) record(at uint64, magic uint32) (uint64, bool) {
	for range maxRecords {
		number, ok := c.half(at)
		size, isThere := c.half(at + 4)
		switch {
		case !ok || !isThere || number == 0 || size < 8:
			return 0, false
		case number == uint64(magic):
			return at + 8, true
		}
		at += size
	}
	return 0, false
}

// trapInfo is what a handler without a siginfo_t was called for, by the exception of the
// processor: that of the thread's last fault, which may have been another one.
func (c *crash) trapInfo(trap sdk.Trap, hasTrap bool, sp uint64) (x target.SignalInfo, ok bool) {
	if !hasTrap {
		return x, false
	}
	x.Signal = int(trap.Signal)
	if trap.HasAddress {
		x.Address, x.HasAddress = c.word(sp + uint64(c.machine.SignalFrame.Address))
		return x, x.HasAddress
	}
	if c.machine.CanonicalBits != 0 && x.Signal != sigFPE {
		x.Code = target.SignalFromKernel // as of all exceptions of x86 without an address
	}
	return x, true
}

const sigFPE = 8

// behind is the first crash as if it had ended the process.
func (c *crash) behind(x *FirstCrash) *crash {
	first := *c
	first.first = nil
	first.frame = x.Frame
	first.signal = target.SignalName(c.process.Info().Machine, x.info.Signal)
	first.address, first.hasAddress = x.info.Address, x.info.HasAddress
	first.kept = &target.Crash{
		Code: x.info.Code, HasCode: x.hasInfo || x.info.Code != 0, Sender: x.info.Sender, SystemCall: x.info.SystemCall,
		Name: target.SignalCrash(first.signal, x.info.Code),
	}
	stack := *c.stack
	stack.Frames = stack.Frames[x.Frame:]
	first.stack = &stack
	first.frames = nil
	for i := range c.frames {
		if c.frames[i].Index() >= x.Frame {
			first.frames = c.frames[i:]
			break
		}
	}
	first.setPC(x.PC, true)
	return &first
}

// isCause says whether the instruction at the PC can have raised the signal.
func (c *crash) isCause() bool {
	switch c.signal {
	case "SIGSEGV", "SIGBUS":
		switch {
		case c.hasAddress:
			return c.isReached(c.address)
		case c.kept.Code == target.SignalFromKernel:
			return c.instruction.Kind == sdk.PrivilegedInstruction || c.protectionOf() != ""
		}
		return c.accesses() != ""
	case "SIGFPE":
		return c.instruction.Kind == sdk.DivideInstruction
	case "SIGILL":
		return !c.isDecoded || c.instruction.Text == noInstruction || c.instruction.Kind == sdk.UndefinedInstruction
	case "SIGTRAP":
		return c.breakpointText() != ""
	}
	return false
}

// isReached says whether the instruction at the PC accesses an address, or lies there.
func (c *crash) isReached(address uint64) bool {
	return c.failing(address) != nil || c.hasPC && address-c.pc < uint64(max(c.instruction.Size, 1))
}

// again explains a signal of a fault that the process sent to itself where it was not in a
// system call: a handler raised it again while it was blocked, and returned. The PC is still
// at the instruction that failed.
func (c *crash) again() string {
	if !c.isOwn() || c.kept.Code > 0 || c.signal == "SIGABRT" || !slices.Contains(caught, c.signal) || !c.hasPC || c.isBehindCall() {
		return ""
	}
	first := *c
	first.kept = &target.Crash{Name: c.signal}
	first.hasAddress = false
	if c.pc == 0 || !first.isCause() && first.execution() == "" {
		return ""
	}
	if text := first.explanation(); text != "" {
		return text + ", raised again by the process"
	}
	return ""
}

// isFalse says whether the instruction at the PC cannot have accessed the address that a signal
// has: a process sent it, with what it had of another one, or the target does not say who
// did, and the address may be the ID of that process.
func (c *crash) isFalse(address uint64) bool {
	if !c.hasPC || !c.isDecoded || c.kept.Access != "" || c.signal != "SIGSEGV" && c.signal != "SIGBUS" || c.isReached(address) {
		return false
	}
	return c.isBehindCall() || !c.kept.HasCode && address < maxProcess
}

// maxProcess is the end of the IDs of processes (PID_MAX_LIMIT of Linux).
const maxProcess = 1 << 22

// isBehindCall says whether the instruction before the PC is a system call: a signal that a
// thread sends to itself stops it there.
func (c *crash) isBehindCall() bool {
	if c.machine == nil {
		return false
	}
	for size := uint64(1); size <= uint64(c.machine.MaxInstruction) && size <= maxSystemCall && size <= c.pc; size++ {
		in, err := c.process.Instruction(c.ctx, c.thread, c.pc-size)
		if err == nil && uint64(in.Size) == size && in.Kind == sdk.SystemCallInstruction {
			return true
		}
	}
	return false
}

// maxSystemCall is how long the instructions of system calls are at most.
const maxSystemCall = 4
