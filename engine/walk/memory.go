// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Memory is a process as a walk reads it: its memory, and the code in it.
type Memory interface {
	Code
	// ReadMemory reads as target.Target does: for another space than the default one the
	// instance that belongs to a thread; nil where none is meant.
	ReadMemory(space locexpr.AddressSpace, thread *trace.Thread, address uint64, buf []byte) (int, error)
	// Mapped is as in target.Target.
	Mapped(address uint64) (mapped, executable bool)
}

// Code finds the code of a process.
type Code interface {
	// Segment returns the segment of code at an address; nil where there is none.
	Segment(address uint64) *code.Segment
}

// targetMemory is the Memory of a target.
type targetMemory struct {
	state    target.Target
	segments code.Segments
}

func (m *targetMemory) ReadMemory(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace { // nearly always
		return m.state.ReadMemory(space, address, buf)
	}
	return readMemory(m.state, space, th, address, buf)
}

func (m *targetMemory) Mapped(address uint64) (mapped, executable bool) {
	return m.state.Mapped(address)
}
func (m *targetMemory) Segment(address uint64) *code.Segment { return m.segments.Find(address) }

// readMemory reads global memory, or the instance of another space that belongs
// to a thread, which is nil where none is meant.
func readMemory(state target.Target, space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if s, ok := state.(target.ScopedMemory); ok && th != nil && space != locexpr.DefaultSpace {
		return s.ReadScoped(space, th, address, buf)
	}
	return state.ReadMemory(space, address, buf)
}
