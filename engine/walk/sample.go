// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Sample is a target made of the data that a profiler keeps of one moment: registers, the bytes
// at the top of a stack, and the modules loaded. The samples of a stream are walked by a Walker
// of one Process, which keeps its findings about the modules.
type Sample struct {
	trace.Sample
	// Loaded are the modules; their code is read from their objects.
	Loaded []*target.Module

	// Code is the code of the sample's process, for samples of one Walker whose processes
	// differ; nil: the Walker's process's.
	Code SampleCode
	// OtherArchs are the architectures of further samples of one Process: of the 32-bit
	// processes of a 64-bit kernel.
	OtherArchs []string

	threads []*trace.Thread
}

// SampleCode is the code of the process of a sample.
type SampleCode interface {
	Code
	// IsCode reports whether there is code at an address, known or not.
	IsCode(address uint64) bool
}

// Thread returns the sample's one thread.
func (s *Sample) Thread() *trace.Thread { return s.Threads()[0] }

// SampleKind is the kind of the target that a sample is.
const SampleKind = "sample"

// Info returns the kind alone: a sample has no file and no signal.
func (s *Sample) Info() trace.Target { return trace.Target{Kind: SampleKind} }

// Modules returns Loaded.
func (s *Sample) Modules() []*target.Module { return s.Loaded }

// Threads returns the one thread, and one without registers for each of OtherArchs.
func (s *Sample) Threads() []*trace.Thread {
	if s.threads == nil {
		s.threads = []*trace.Thread{{ID: s.ThreadID, Arch: s.Arch, Registers: s.Registers}}
		for _, arch := range s.OtherArchs {
			s.threads = append(s.threads, &trace.Thread{Arch: arch})
		}
	}
	return s.threads
}

// ReadMemory reads the stack's bytes, and read-only memory of the modules.
func (s *Sample) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d: %w", space, target.ErrNoMemory)
	}
	if offset := address - s.StackStart; offset < uint64(len(s.Stack)) {
		n := copy(buf, s.Stack[offset:])
		if n == len(buf) {
			return n, nil
		}
		return n, fmt.Errorf("0x%x: %w", address+uint64(n), target.ErrEndOfStack)
	}
	for _, m := range s.Loaded {
		if offset, ok := m.Contains(address); ok && m.Object != nil {
			n, err := m.Object.ReadAddress(buf, offset)
			if n < len(buf) {
				return n, fmt.Errorf("0x%x: %w: %w", address+uint64(n), target.ErrNoMemory, err)
			}
			return n, nil
		}
	}
	if s.isAboveStack(address) {
		return 0, fmt.Errorf("0x%x: %w", address, target.ErrEndOfStack)
	}
	return 0, fmt.Errorf("0x%x: %w", address, target.ErrNoMemory)
}

// isAboveStack reports whether an address is where the recorded bytes of the stack ended,
// rather than somewhere else.
func (s *Sample) isAboveStack(address uint64) bool { return address-s.StackStart < 1<<30 }

// Mapped reports whether address is in the stack's bytes or in a module.
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
