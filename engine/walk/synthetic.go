// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Synthetic is a target that the caller made up: one process, one work-group, one thread with a
// top frame. Only the parts that are read need to be set; reading others is an error that names
// the missing part.
type Synthetic struct {
	Arch      string
	Processor string
	Lanes     uint32 // 0: the processor's
	Registers sdk.Registers
	Memory    []Piece
	Loaded    []*target.Module // whose objects are the caller's

	threads []*trace.Thread
}

// Piece is bytes at an address of an address space.
type Piece struct {
	Space   locexpr.AddressSpace
	Address uint64
	Bytes   []byte
}

var _ target.ScopedMemory = (*Synthetic)(nil)

// Thread returns the one thread.
func (s *Synthetic) Thread() *trace.Thread { return s.Threads()[0] }

// Info returns the kind alone.
func (s *Synthetic) Info() trace.Target { return trace.Target{Kind: "synthetic"} }

// Modules returns Loaded.
func (s *Synthetic) Modules() []*target.Module { return s.Loaded }

// Threads returns the one thread.
func (s *Synthetic) Threads() []*trace.Thread {
	if s.threads == nil {
		s.threads = []*trace.Thread{{ID: "1", Arch: s.Arch, Processor: s.Processor, Lanes: s.Lanes, Registers: s.Registers}}
	}
	return s.threads
}

// ReadMemory reads from the pieces, a later one before an earlier one.
func (s *Synthetic) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for n := range buf {
		b, ok := s.byteAt(space, address+uint64(n))
		if !ok {
			return n, fmt.Errorf("memory of space %d at 0x%x was not given: %w", space, address+uint64(n), target.ErrNoMemory)
		}
		buf[n] = b
	}
	return len(buf), nil
}

func (s *Synthetic) byteAt(space locexpr.AddressSpace, address uint64) (byte, bool) {
	for i := len(s.Memory) - 1; i >= 0; i-- {
		if p := &s.Memory[i]; p.Space == space && address-p.Address < uint64(len(p.Bytes)) {
			return p.Bytes[address-p.Address], true
		}
	}
	return 0, false
}

// ReadScoped reads from the pieces: there is one instance of each space.
func (s *Synthetic) ReadScoped(space locexpr.AddressSpace, _ *trace.Thread, address uint64, buf []byte) (int, error) {
	return s.ReadMemory(space, address, buf)
}

// Mapped reports whether an address is in a piece of global memory, or in a module.
// Code is in modules.
func (s *Synthetic) Mapped(address uint64) (mapped, executable bool) {
	for _, m := range s.Loaded {
		for i := range m.Segments {
			if segment := &m.Segments[i]; address-segment.Start < segment.Size {
				return true, target.HoldsCode(m.Object, segment)
			}
		}
	}
	_, mapped = s.byteAt(locexpr.DefaultSpace, address)
	return mapped, false
}

// Close does nothing: the modules' objects are the caller's.
func (s *Synthetic) Close() error { return nil }
