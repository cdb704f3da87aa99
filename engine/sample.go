package engine

import (
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
		if n < len(buf) {
			return n, fmt.Errorf("0x%x: %w", address+uint64(n), target.ErrEndOfStack)
		}
		return n, nil
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
	if at := address - s.StackStart; at < 1<<30 {
		return 0, fmt.Errorf("0x%x: %w", address, target.ErrEndOfStack)
	}
	return 0, fmt.Errorf("0x%x: %w", address, target.ErrNoMemory)
}

// Mapped says whether address is in the stack's bytes or in a module.
func (s *Sample) Mapped(address uint64) (mapped, executable bool) {
	for _, m := range s.Loaded {
		if _, ok := m.Contains(address); ok {
			return true, true
		}
	}
	return address-s.StackStart < uint64(len(s.Stack)), false
}

// Close does nothing: the modules' objects are the caller's.
func (s *Sample) Close() error { return nil }
