// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// interrupted is a FirstCrash with the facts of its signal.
type interrupted struct {
	trace.CaughtCrash
	info    target.SignalInfo
	hasInfo bool // else only the registers tell what happened
}

// public is the FirstCrash of x, which may be nil.
func (x *interrupted) public() *trace.CaughtCrash {
	if x == nil {
		return nil
	}
	return &x.CaughtCrash
}

// FindFirst finds the first crash in the stack of a thread; it returns nil where no handler of
// a crash is running there.
func FindFirst(ctx context.Context, p *walk.Process, s *trace.Stack) *trace.CaughtCrash {
	if !slices.ContainsFunc(s.Frames, func(f trace.Frame) bool { return f.SignalFrame }) {
		return nil
	}
	return newCrash(ctx, p, s.Thread).first.public()
}

// keptFirst returns the first crash that a snapshot recorded, whose stack may not show it for
// want of files.
func (c *crash) keptFirst() *trace.CaughtCrash {
	if c.first != nil || c.kept.First == nil {
		return c.first.public()
	}
	x := &trace.CaughtCrash{FirstCrash: *c.kept.First}
	for i := range c.stack.Frames {
		if i > 0 && c.stack.Frames[i].PC == x.PC {
			x.Frame, x.Inside = i, c.stack.Frames[:i]
			break
		}
	}
	return x
}

// caught are the signals whose handlers catch crashes.
var caught = []string{"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP"}

// findFirst finds the first crash: the outermost one that a fault of the processor or abort()
// caused, or else one by a signal that a process sent.
func (c *crash) findFirst() (first *interrupted) {
	if c.machine == nil || c.machine.SignalFrame == nil || c.thread.Wave != nil {
		return nil
	}
	for i := len(c.stack.Frames) - 2; i > 0; i-- {
		if !c.stack.Frames[i].SignalFrame {
			continue
		}
		x := c.caughtAt(i)
		switch {
		case x == nil || x.Sender != nil && first != nil:
		case x.Sender == nil || x.Signal == sigABRT:
			return x
		default:
			first = x
		}
	}
	return first
}

// caughtAt returns the crash with a signal frame of the stack; nil where its signal is not one
// of a crash.
func (c *crash) caughtAt(i int) *interrupted {
	if i+1 >= len(c.frames) {
		return nil
	}
	sp, err := c.frames[i].Value(c.ctx, uint64(c.machine.SP))
	if err != nil {
		return nil
	}
	x := &interrupted{CaughtCrash: trace.CaughtCrash{Frame: i + 1, Inside: c.stack.Frames[:i+1]}}
	x.Thread, x.PC, x.Handler = c.thread.ID, c.stack.Frames[i+1].PC, c.functionAt(i-1)
	trap, hasTrap := c.trapAt(sp)
	info, ok := c.signalInfo(sp, hasTrap)
	x.hasInfo = ok && c.agrees(&info, trap, hasTrap, sp)
	if !x.hasInfo {
		if info, ok = c.trapInfo(trap, hasTrap, sp); !ok || !c.behind(x, &info).isCause() {
			if !c.isAbort(i + 1) {
				return nil
			}
			info = target.SignalInfo{Signal: sigABRT, Sender: c.itself()}
		}
	}
	name := target.SignalName(c.process.Info().Machine, info.Signal)
	if !slices.Contains(caught, name) || info.Sender != nil && isOfGo(&c.stack.Frames[i+1]) {
		return nil
	}
	x.info = info
	x.Signal, x.Name, x.Sender = info.Signal, target.SignalCrash(name, info.Code), info.Sender
	x.Address, x.HasAddress = info.Address, info.HasAddress
	return x
}

// isAbort reports whether a frame belongs to the functions that abort() calls to send SIGABRT.
func (c *crash) isAbort(first int) bool {
	for i := first; i < len(c.stack.Frames) && i < first+maxRaise; i++ {
		if name := linkageName(&c.stack.Frames[i]); name == "abort" || name == "__GI_abort" {
			return true
		}
	}
	return false
}

// maxRaise is how many frames abort() has: raise and its callees.
const maxRaise = 5

// itself returns the process as the sender of a signal.
func (c *crash) itself() *trace.Sender {
	s := &trace.Sender{}
	if f := c.process.Info().Facts; f != nil {
		s.ID = int32(f.Process.ID) //nolint:gosec // as in the target
		if f.Process.User != nil {
			s.User = *f.Process.User
		}
	}
	return s
}

// isOfGo reports whether a frame belongs to Go's runtime, which ends the process by a signal
// that it handles itself.
func isOfGo(f *trace.Frame) bool { return strings.HasPrefix(nameAt(f), "runtime.") }

// usedOfInfo is how many bytes of a siginfo_t the kernel uses.
const usedOfInfo = 48

// signalInfo reads the siginfo_t of a signal frame.
func (c *crash) signalInfo(sp uint64, hasTrap bool) (x target.SignalInfo, ok bool) {
	b := make([]byte, target.SignalInfoSize)
	n, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, sp+uint64(c.machine.SignalFrame.Info), b)
	// The kernel fills the rest with zeros. Emulators without exceptions do not.
	if n < len(b) || hasTrap && slices.Max(b[usedOfInfo:]) > 0 {
		return x, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if c.order == sdk.BigEndian {
		order = binary.BigEndian
	}
	return target.ReadSignalInfo(b, c.process.Info().Machine, order, c.wordSize())
}

// agrees reports whether a siginfo_t is credible: the kernel leaves it out for a handler that
// did not ask for it, and old bytes are in its place. It must be well formed, and for a fault
// it must not contradict the exception and the address, which are always there.
func (c *crash) agrees(x *target.SignalInfo, trap sdk.Trap, hasTrap bool, sp uint64) bool {
	name := target.SignalName(c.process.Info().Machine, x.Signal)
	if name == "" || x.Error != 0 || x.Code != target.SignalFromUser && target.SignalCode(name, x.Code) == "" {
		return false
	}
	if x.Sender != nil {
		return x.Sender.ID > 0
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

// trapAt returns the exception of the processor in a signal frame; ok is false where it has
// none, or none that becomes a signal.
func (c *crash) trapAt(sp uint64) (t sdk.Trap, ok bool) {
	s := c.machine.SignalFrame
	if s.Trap == 0 {
		return t, false
	}
	address := sp + uint64(s.Trap)
	if s.TrapRecord != 0 {
		if address, ok = c.record(address, s.TrapRecord); !ok {
			return t, false
		}
	}
	word, ok := c.word(address)
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
func (c *crash) record(address uint64, magic uint32) (uint64, bool) {
	for range maxRecords {
		number, ok := c.half(address)
		size, isThere := c.half(address + 4)
		switch {
		case !ok || !isThere || number == 0 || size < 8:
			return 0, false
		case number == uint64(magic):
			return address + 8, true
		}
		address += size
	}
	return 0, false
}

// trapInfo returns why a handler without a siginfo_t was called, by the exception of the
// processor: the thread's last fault, which may be unrelated.
func (c *crash) trapInfo(trap sdk.Trap, hasTrap bool, sp uint64) (x target.SignalInfo, ok bool) {
	if !hasTrap {
		// Where the record is left out, the address may still be from a fault.
		trap = sdk.Trap{Signal: sigSEGV, HasAddress: c.machine.SignalFrame.TrapRecord != 0}
	}
	x.Signal = int(trap.Signal)
	switch {
	case !hasTrap && !trap.HasAddress:
		return x, false
	case trap.HasAddress:
		x.Address, x.HasAddress = c.word(sp + uint64(c.machine.SignalFrame.Address))
		return x, x.HasAddress
	}
	if c.machine.CanonicalBits != 0 && x.Signal != sigFPE {
		x.Code = target.SignalFromKernel // as for all exceptions of x86 without an address
	}
	return x, true
}

// Signals that have the same number on every machine.
const (
	sigABRT = 6
	sigFPE  = 8
	sigSEGV = 11
)

// behind returns the first crash as if it had ended the process.
func (c *crash) behind(x *interrupted, info *target.SignalInfo) *crash {
	first := *c
	first.first, first.frame = nil, x.Frame
	first.signal = target.SignalName(c.process.Info().Machine, info.Signal)
	first.address, first.hasAddress = info.Address, info.HasAddress
	first.kept = &trace.Crash{
		Code: info.Code, HasCode: x.hasInfo || info.Code != 0, Sender: info.Sender,
		Name: target.SignalCrash(first.signal, info.Code),
	}
	stack := *c.stack
	stack.Frames = stack.Frames[x.Frame:]
	first.stack, first.frames = &stack, c.frames[min(x.Frame, len(c.frames)):]
	first.setPC(x.PC, true)
	return &first
}

// isCause reports whether the instruction at the PC can have raised the signal.
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

// isReached reports whether the instruction at the PC accesses an address, or lies there.
func (c *crash) isReached(address uint64) bool {
	return c.failing(address) != nil || c.hasPC && address-c.pc < uint64(max(c.instruction.Size, 1))
}

// again explains a signal of a fault that the process sent to itself outside of a system call:
// a handler raised it again while it was blocked, and returned. The PC is still at the
// instruction that failed, and the signal frame is still there below the stack pointer, unless
// the handler had a stack of its own.
func (c *crash) again() string {
	if !c.isOwn() || c.kept.Code > 0 || c.signal == "SIGABRT" || !slices.Contains(caught, c.signal) || !c.hasPC || c.isBehindCall() {
		return ""
	}
	x := &interrupted{CaughtCrash: trace.CaughtCrash{FirstCrash: trace.FirstCrash{PC: c.pc}}}
	info, ok := c.popped()
	if x.hasInfo = ok; !ok {
		info = target.SignalInfo{Signal: c.process.Info().Signal}
	}
	first := c.behind(x, &info)
	if !ok && (c.pc == 0 || !first.isCause() && first.execution() == "") {
		return ""
	}
	if text := first.explanation(); text != "" {
		return text + ", raised again by the process"
	}
	return ""
}

// maxPopped is how far below the stack pointer a signal frame can begin. The state of the
// vector registers takes most of it.
const maxPopped = 1 << 15

// popped returns the siginfo_t of the signal frame through which the kernel returned to the PC.
func (c *crash) popped() (info target.SignalInfo, ok bool) {
	if c.machine == nil || c.machine.SignalFrame == nil || c.machine.SignalFrame.PC == 0 {
		return info, false
	}
	sp, ok := c.register(c.machine.SP)
	if !ok {
		return info, false
	}
	b := make([]byte, min(maxPopped, sp))
	start, size := sp-uint64(len(b)), c.wordSize()
	n, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, start, b)
	for offset := 0; offset+size <= n; offset += size {
		if integer(b[offset:offset+size], c.order) != c.pc {
			continue
		}
		frame := start + uint64(offset) - uint64(c.machine.SignalFrame.PC)
		trap, hasTrap := c.trapAt(frame)
		info, ok = c.signalInfo(frame, hasTrap)
		if ok && info.Signal == c.process.Info().Signal && info.Code > 0 && c.agrees(&info, trap, hasTrap, frame) {
			return info, true
		}
	}
	return info, false
}

// isFalse reports whether the instruction at the PC cannot have accessed the address of a
// signal: a process sent the signal again with the address of another, or the target does not
// record the sender, and the address may be that process's ID.
func (c *crash) isFalse(address uint64) bool {
	if !c.hasPC || !c.isDecoded || c.kept.Access != "" || c.signal != "SIGSEGV" && c.signal != "SIGBUS" || c.isReached(address) {
		return false
	}
	return c.isBehindCall() || !c.kept.HasCode && address < maxProcess
}

// maxProcess is the end of the IDs of processes (PID_MAX_LIMIT of Linux).
const maxProcess = 1 << 22

// isBehindCall reports whether the instruction before the PC is a system call: a signal that a
// thread sends to itself stops it there.
func (c *crash) isBehindCall() bool {
	if c.machine == nil {
		return false
	}
	for size := uint64(1); size <= uint64(c.machine.MaxInstruction) && size <= maxSystemCall && size <= c.pc; size++ {
		instruction, err := c.process.Instruction(c.ctx, c.thread, c.pc-size)
		if err == nil && uint64(instruction.Size) == size && instruction.Kind == sdk.SystemCallInstruction {
			return true
		}
	}
	return false
}

// maxSystemCall is the size of the longest system call instruction.
const maxSystemCall = 4
