package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A Sample is a target made of what a profiler keeps of one moment: registers,
// the bytes at the top of a stack, and the modules loaded. Attach walks it.
//
//	s := &engine.Sample{Arch: "x86_64", Registers: regs, StackStart: sp, Stack: bytes, Loaded: modules}
//	stack := e.Attach(s).Walk(ctx, s.Thread())
//
// The samples of a stream are walked by a Walker of one Target, which keeps
// what was found out about the modules:
//
//	process := e.Attach(&engine.Sample{Arch: "x86_64", Loaded: modules})
//	w := process.Walker() // one for each goroutine
//	for each sample s { stack := w.Walk(ctx, s) }
type Sample struct {
	Arch      string // of the thread and of its modules
	ThreadID  string
	Registers sdk.Registers
	// Stack is the bytes from StackStart on, which nearly always is the stack
	// pointer. A walk that leaves them ends with StopEndOfStack.
	StackStart uint64
	Stack      []byte
	// Loaded are the modules; their code is read from their objects.
	Loaded []*target.Module

	threads []*target.Thread
	space   *codeSpace // of a recording, instead of Loaded
	made    *madeCode  // beside it
}

// Thread is the sample's one thread.
func (s *Sample) Thread() *target.Thread { return s.Threads()[0] }

// Info says that a sample has no file and died of nothing.
func (s *Sample) Info() target.Info { return target.Info{Kind: "sample"} }

// Modules are those of Loaded.
func (s *Sample) Modules() []*target.Module { return s.Loaded }

// Threads is the one thread.
func (s *Sample) Threads() []*target.Thread {
	if s.threads == nil {
		s.threads = []*target.Thread{{ID: s.ThreadID, Arch: s.Arch, Registers: s.Registers}}
	}
	return s.threads
}

// ReadMemory reads the stack's bytes, and what is read-only in the modules.
func (s *Sample) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d: %w", space, target.ErrNoMemory)
	}
	if at := address - s.StackStart; at < uint64(len(s.Stack)) {
		n := copy(buf, s.Stack[at:])
		switch {
		case n == len(buf):
			return n, nil
		case s.space != nil:
			return n, target.ErrEndOfStack
		}
		return n, fmt.Errorf("0x%x: %w", address+uint64(n), target.ErrEndOfStack)
	}
	if s.space != nil {
		if s.aboveStack(address) {
			return 0, target.ErrEndOfStack
		}
		if at := s.made.find(address); at != nil {
			return at.module.code(address, buf)
		}
		return s.space.read(address, buf)
	}
	for _, m := range s.Loaded {
		if at, ok := m.Contains(address); ok && m.Object != nil {
			n, err := m.Object.ReadAddress(buf, at)
			if n < len(buf) {
				return n, fmt.Errorf("0x%x: %w: %w", address+uint64(n), target.ErrNoMemory, err)
			}
			return n, nil
		}
	}
	if s.aboveStack(address) {
		return 0, fmt.Errorf("0x%x: %w", address, target.ErrEndOfStack)
	}
	return 0, fmt.Errorf("0x%x: %w", address, target.ErrNoMemory)
}

// aboveStack says whether an address is where the bytes of the stack were cut
// off, rather than somewhere else.
func (s *Sample) aboveStack(address uint64) bool { return address-s.StackStart < 1<<30 }

// Mapped says whether address is in the stack's bytes or in a module.
func (s *Sample) Mapped(address uint64) (mapped, executable bool) {
	if s.space != nil && s.space.executable(address) {
		return true, true
	}
	for _, m := range s.Loaded {
		if _, ok := m.Contains(address); ok {
			return true, true
		}
	}
	return address-s.StackStart < uint64(len(s.Stack)), false
}

// Close does nothing: the modules' objects are the caller's.
func (s *Sample) Close() error { return nil }

// A Walker walks the stacks of the samples of one process, one after the other,
// in memory that it keeps: once the rows of their code are known, a walk
// without symbols allocates nothing but the text of an error that ends it. It
// is not for concurrent use; a Target may have several.
type Walker struct {
	walker walker
	sample target.Thread
	thread thread
	stack  Stack
	plain  *machine // whose binding of one sample is that of the next but for the PC
}

// Walker makes a Walker for samples of the process that t is. A Sample without
// threads' state, which has an Arch and the modules, is enough of a target.
func (t *Target) Walker() *Walker {
	k := &Walker{walker: *t.walker()}
	k.thread.Thread = &k.sample
	return k
}

// Walk walks the stack of a sample, whose modules are those of the target. The
// Stack and what it refers to are valid until the next call.
func (k *Walker) Walk(ctx context.Context, s *Sample) *Stack {
	t := k.walker.target
	t.bound.Do(func() { t.bindAll(ctx) })
	k.stack = Stack{Thread: &k.sample, Frames: k.stack.Frames[:0]}
	k.sample = target.Thread{ID: s.ThreadID, Arch: s.Arch, Registers: s.Registers}
	m := t.machines[s.Arch]
	if m == nil {
		k.stack.Stopped = Stopped{StopPluginFailed, fmt.Sprintf("the target has no thread of architecture %q", s.Arch)}
		return &k.stack
	}
	if !k.bind(ctx, m, s) {
		// Its lanes or its address spaces are its own: it is a target by itself.
		alone := *s
		alone.threads = nil
		own := t.engine.Attach(&alone)
		defer own.Close()
		return own.Walk(ctx, alone.Thread())
	}
	k.walker.start(s, &k.thread, &k.stack)
	k.walker.sample = s
	k.walker.guarded(ctx)
	return &k.stack
}

// bind binds the sample's thread. A thread of one lane, whose PC is that of the
// PC register and which has neither widths nor maps of its own, is bound as the
// one before it: no call is made for each sample. It answers false where a
// thread is not of this kind.
func (k *Walker) bind(ctx context.Context, m *machine, s *Sample) bool {
	pc, ok := s.Registers.Uint64(m.desc.PC, m.desc.ByteOrder)
	if ok && k.plain == m && pc <= k.walker.addresses {
		k.thread.binding.PC = pc
		return true
	}
	if k.thread.arch == m && errors.Is(k.thread.failure, context.DeadlineExceeded) {
		return true // a plugin that hung would only cost its deadline once more
	}
	k.plain, k.thread.arch, k.thread.binding, k.thread.failure = nil, m, nil, nil
	k.walker.target.bind(ctx, m, &k.thread)
	b := k.thread.binding
	if b == nil || b.Problem != "" {
		return true // that is how the walk ends
	}
	if b.Lanes > 1 || b.ActiveUnknown || len(b.Widths) > 0 || len(b.Maps) > 0 || !ok || b.PC != pc {
		return false
	}
	own := *b
	k.plain, k.thread.binding = m, &own
	return true
}
