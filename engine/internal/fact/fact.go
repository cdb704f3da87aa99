// SPDX-License-Identifier: Apache-2.0

// Package fact explains in one line why a process crashed: from its signal, the instruction
// that failed with its accesses, the mappings, and the messages that run-time libraries leave
// in memory. Guesses are marked as such.
package fact

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Of returns one line about what happened to a process when the target was recorded, and the
// crash that a handler caught before. The line is "" where nothing happened, or no more than
// the signal's name is known; the crash is nil where no handler caught one.
func Of(ctx context.Context, p *walk.Process) (text string, first *trace.CaughtCrash) {
	thread := Thread(p)
	if thread == nil {
		return "", nil
	}
	c := newCrash(ctx, p, thread)
	if text := c.kept.Fact; text != "" && !c.hasFiles() {
		return text, c.keptFirst()
	}
	if text := c.whole(); text != "" {
		return oneLine(strings.ToValidUTF8(text, "\ufffd")), c.first.public()
	}
	return c.kept.Fact, c.keptFirst()
}

// oneLine joins the lines of a message.
func oneLine(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// hasFiles reports whether the code of all frames is there: then the line of a snapshot can be
// computed again.
func (c *crash) hasFiles() bool {
	for i := range c.stack.Frames {
		if m := c.stack.Frames[i].Module; m != nil && c.process.CodeObject(m) == nil {
			return false
		}
	}
	return c.machine != nil
}

// whole explains the crash: the first one, where a handler caught it.
func (c *crash) whole() string {
	x := c.first
	if x == nil {
		return c.explanation()
	}
	first := c.behind(x, &x.info)
	text := first.explanation()
	if text == "" {
		text = x.Name + first.whereText()
	}
	if x.Handler != "" {
		text += ", handled in " + x.Handler
	}
	if c.sent() == "" && c.signal != "SIGABRT" && c.isCause() {
		text += "; the handler failed itself: " + c.explanation()
	}
	return text
}

// explanation explains the crash by the state of the target.
func (c *crash) explanation() string {
	if again := c.again(); again != "" {
		return again
	}
	for _, explain := range c.explainers() {
		if text := explain(c); text != "" {
			return text
		}
	}
	if c.thread.Wave != nil || c.signal == "" {
		return c.stop()
	}
	return c.sent()
}

// explainers are the explainers of each signal: the first with a result counts.
var explainers = map[string][]func(*crash) string{
	"SIGSEGV": {(*crash).stop, (*crash).sent, (*crash).overflow, (*crash).execution, (*crash).access},
	"SIGBUS":  {(*crash).stop, (*crash).sent, (*crash).bus},
	"SIGFPE":  {(*crash).stop, (*crash).sent, (*crash).arithmetic},
	"SIGILL":  {(*crash).stop, (*crash).sent, (*crash).execution, (*crash).illegal},
	"SIGTRAP": {(*crash).stop, (*crash).sent, (*crash).trap},
	"SIGABRT": {(*crash).assertion, (*crash).stop, (*crash).abort},
	"SIGSYS":  {(*crash).stop, (*crash).systemCall},
	"SIGXCPU": {(*crash).sentByOther, says("the limit of CPU time is used up")},
	"SIGXFSZ": {(*crash).sentByOther, says("a file grew beyond the limit of its size")},
}

// explainers returns the explainers of the signal, or of the exception of a system without
// signals.
func (c *crash) explainers() []func(*crash) string {
	if c.thread.Wave != nil || c.signal != "" {
		return explainers[c.signal]
	}
	for _, x := range exceptions {
		if strings.HasPrefix(c.kept.Name, x.begins) {
			return x.explain
		}
	}
	return []func(*crash) string{(*crash).assertion}
}

// says returns an explainer that gives the same text for every crash, with its place.
func says(what string) func(*crash) string {
	return func(c *crash) string { return what + c.whereInProgram() }
}

// Thread returns the thread that the target marks as crashed: the wave where one failed,
// although the process got the signal in another thread; nil where none did.
func Thread(p *walk.Process) (found *trace.Thread) {
	hasCrashed := func(th *trace.Thread) bool { return th.Crashed }
	for _, th := range p.ThreadList().Where(hasCrashed) {
		if th.Wave != nil {
			return th
		}
		if found == nil {
			found = th
		}
	}
	return found
}

// crash has everything known of a crash.
type crash struct {
	ctx     context.Context
	process *walk.Process
	thread  *trace.Thread
	kept    *trace.Crash // as the target recorded it; never nil
	signal  string       // SIGSEGV
	// address is the accessed address, as the signal has it, if hasAddress.
	address    uint64
	hasAddress bool

	machine *sdk.Description // nil: no architecture reads the thread
	order   sdk.ByteOrder
	stack   *trace.Stack
	frames  []walk.Activation
	frame   int          // the index of the first of the stack's frames, 0 unless the crash is a first one
	first   *interrupted // nil: no handler caught another crash before
	pc      uint64
	hasPC   bool
	// instruction is the instruction at the PC, if isDecoded.
	instruction sdk.Instruction
	isDecoded   bool
}

func newCrash(ctx context.Context, p *walk.Process, thread *trace.Thread) *crash {
	info := p.Info()
	c := &crash{ctx: ctx, process: p, thread: thread, kept: &trace.Crash{}, address: info.FaultAddress, hasAddress: info.HasFaultAddress}
	if info.Facts != nil && info.Facts.Crash != nil {
		c.kept = info.Facts.Crash
	}
	if info.Signal != 0 {
		c.signal = target.SignalName(info.Machine, info.Signal)
	}
	c.pc, c.hasPC = thread.PC, thread.HasPC
	if m := p.Machine(thread); m != nil {
		c.machine, c.order = m.Description, m.Description.ByteOrder
		c.pc, c.hasPC = thread.Registers.Uint64(m.Description.PC, c.order)
	}
	c.stack, c.frames = p.Activations(ctx, thread)
	c.setPC(c.pc, c.hasPC)
	c.hasAddress = c.hasAddress && !c.isFalse(c.address)
	c.first = c.findFirst()
	return c
}

// setPC decodes the instruction at the PC.
func (c *crash) setPC(pc uint64, hasPC bool) {
	c.pc, c.hasPC, c.instruction, c.isDecoded = pc, hasPC, sdk.Instruction{}, false
	if hasPC {
		var err error
		c.instruction, err = c.process.Instruction(c.ctx, c.thread, pc)
		c.isDecoded = err == nil
	}
}

// isOwn reports whether the process itself sent the signal. The kernel marks signals for
// exceeded limits the same way.
func (c *crash) isOwn() bool {
	s, facts := c.kept.Sender, c.process.Info().Facts
	return s != nil && facts != nil && s.ID != 0 && int64(s.ID) == facts.Process.ID
}

// register returns the value of a register of the top frame.
func (c *crash) register(number uint32) (uint64, bool) {
	if c.machine == nil || number == sdk.NoRegister {
		return 0, false
	}
	if c.frame > 0 && len(c.frames) > 0 {
		if v, err := c.frames[0].Value(c.ctx, uint64(number)); err == nil {
			return v, true
		}
		if s := c.machine.ThreadLocal; s == nil || s.Pointer != number { // that one belongs to the thread
			return 0, false
		}
	}
	return c.thread.Registers.Uint64(number, c.order)
}

func (c *crash) registerName(number uint32) string {
	info, ok := c.machine.Register(number)
	if !ok {
		return fmt.Sprintf("register %d", number)
	}
	return info.Name
}

// effective returns the address of an access; ok is false where a register is not known.
func (c *crash) effective(a *sdk.Access) (address uint64, ok bool) {
	address = uint64(a.Displacement) //nolint:gosec // its bits
	if a.Base != sdk.NoRegister {
		base, ok := c.register(a.Base)
		if !ok {
			return 0, false
		}
		address += base
	}
	if a.Index != sdk.NoRegister {
		index, ok := c.index(a)
		if !ok {
			return 0, false
		}
		address += index * uint64(a.Scale)
	}
	if a.AddressBits < 64 {
		address &= 1<<a.AddressBits - 1
	}
	if a.Segment != sdk.NoRegister {
		base, ok := c.register(a.Segment)
		if !ok {
			return 0, false
		}
		address += base
	}
	return address, true
}

// index returns the value of an access's index register, as far as it counts.
func (c *crash) index(a *sdk.Access) (uint64, bool) {
	v, ok := c.register(a.Index)
	if n := a.IndexBits; n > 0 && n < 64 {
		v &= 1<<n - 1
		if a.IsIndexSigned && v>>(n-1) == 1 {
			v -= 1 << n
		}
	}
	return v, ok
}

// untagged returns an address without the bits that the processor ignores: the upper bits
// become copies of the highest of the others.
func (c *crash) untagged(address uint64) uint64 {
	if c.machine == nil || c.machine.TagBits == 0 || c.machine.TagBits >= 64 {
		return address
	}
	n := c.machine.TagBits
	return uint64(int64(address<<n) >> n) //nolint:gosec // its bits
}

// failing returns the access of the instruction that failed at an address, whose bytes include
// it. Instructions of strings and of vectors may fail after the first byte.
func (c *crash) failing(fault uint64) *sdk.Access {
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		address, ok := c.effective(a)
		if ok && c.untagged(fault)-c.untagged(address) < uint64(max(a.Size, 1)) {
			return a
		}
	}
	return nil
}

// did describes an access: "reads 8 bytes at 0x18".
func did(a *sdk.Access, address uint64) string {
	verb := "accesses"
	switch {
	case a.IsRead && a.IsWrite:
		verb = "reads and writes"
	case a.IsRead:
		verb = "reads"
	case a.IsWrite:
		verb = "writes"
	}
	if a.Size == 0 {
		return fmt.Sprintf("%s %#x", verb, address)
	}
	return fmt.Sprintf("%s %s at %#x", verb, count(uint64(a.Size), "byte"), address)
}

// count returns a number with a noun, given in the singular.
func count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// through names the register by which an access found its address, and the variable of the top
// frame in it.
func (c *crash) through(a *sdk.Access) string {
	if a == nil || a.Base == sdk.NoRegister {
		return ""
	}
	text := " through " + c.registerName(a.Base)
	if name := c.variableIn(a.Base); name != "" {
		if member := c.frames[0].MemberAt(name, a.Displacement); member != "" && a.Index == sdk.NoRegister {
			name += "->" + member
		}
		text += " (" + name + ")"
	}
	if a.Index != sdk.NoRegister {
		if v, ok := c.index(a); ok {
			text += fmt.Sprintf(" and %s = %#x", c.registerName(a.Index), v)
		}
	}
	return text
}

// linkageName returns the name of the physical function at a frame, as symbol tables have it.
func linkageName(f *trace.Frame) string {
	if len(f.Symbols) == 0 {
		return ""
	}
	return plainName(&f.Symbols[len(f.Symbols)-1])
}

func plainName(s *trace.Symbol) string {
	name := s.LinkageName
	if name == "" {
		name = s.Function
	}
	name, _, _ = strings.Cut(name, "@")
	return name
}

// word reads a word of the target's memory.
func (c *crash) word(address uint64) (uint64, bool) {
	if c.machine == nil {
		return 0, false
	}
	b := make([]byte, (c.machine.AddressBits+7)/8)
	n, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, address, b)
	if n < len(b) || len(b) > 8 {
		return 0, false
	}
	return integer(b, c.order), true
}

// integer returns the number in at most 8 bytes.
func integer(b []byte, order sdk.ByteOrder) (v uint64) {
	for i := range b {
		index := len(b) - 1 - i
		if order == sdk.BigEndian {
			index = i
		}
		v = v<<8 | uint64(b[index])
	}
	return v
}

// maxText bounds a text that is read from memory.
const maxText = 1 << 10

// text reads n bytes of text, or, of negative n, up to a NUL.
func (c *crash) text(address uint64, n int) (string, bool) {
	isEnded := n < 0
	if isEnded || n > maxText {
		n = maxText
	}
	b := make([]byte, n)
	got, _ := c.process.State().ReadMemory(locexpr.DefaultSpace, address, b)
	if !isEnded {
		return string(b[:got]), got == n
	}
	for i, v := range b[:got] {
		if v == 0 {
			return string(b[:i]), true
		}
	}
	return "", false
}

// mapped reports whether the process had an address mapped.
func (c *crash) mapped(address uint64) bool {
	mapped, _ := c.process.State().Mapped(c.untagged(address))
	return mapped
}

// around returns the mapping with an address and its neighbours; nil where the target does not
// know them.
func (c *crash) around(address uint64) (below, within, above *target.Mapping) {
	if m, ok := c.process.State().(target.Mapper); ok {
		return m.Around(c.untagged(address))
	}
	return nil, nil, nil
}

// knowsMappings reports whether the target knows the mappings. A dump may have only the memory
// that an unwinder needs.
func (c *crash) knowsMappings() bool {
	below, within, above := c.around(0)
	return below != nil || within != nil || above != nil
}

// wordSize returns the size of an address of the process in bytes.
func (c *crash) wordSize() int {
	if c.machine != nil {
		return int(c.machine.AddressBits+7) / 8
	}
	if f := c.process.Info().Facts; f != nil {
		return f.System.Bits() / 8
	}
	return 8
}

// flipped returns the address before one of the bits from first to last was likely inverted; ok
// is false where none or several would do.
func (c *crash) flipped(address uint64, first, last int) (original uint64, bit int, ok bool) {
	found := 0
	if c.machine != nil {
		last = min(last, 63-int(c.machine.TagBits)) // higher bits do not count
	}
	for i := first; i <= last; i++ {
		if a := address ^ 1<<i; c.mapped(a) {
			original, bit = a, i
			found++
		}
	}
	return original, bit, found == 1 && bits.OnesCount64(address) > 4
}
