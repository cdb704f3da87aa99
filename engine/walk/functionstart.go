// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// FunctionStart returns the ELF virtual address at which the function of a frame begins, by call frame
// information or its symbol. ok is false where neither has the frame's PC, or cannot be read.
func (p *Process) FunctionStart(f *trace.Frame) (address uint64, ok bool) {
	pc := f.PC
	if !f.Exact && pc > 0 {
		pc-- // a return address may be the next function's
	}
	s := p.Segment(pc)
	if f.Module == nil || s == nil || &s.Module.Module.Module != f.Module {
		return 0, false
	}
	_ = object.Guard(func() error {
		b := s.Module.Code.BoundsAt(s.ObjectAddress(pc))
		address, ok = s.Module.Code.Offset(b.Start), b.IsKnown
		return nil
	})
	return address, ok
}
