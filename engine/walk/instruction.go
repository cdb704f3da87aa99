// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// Instruction returns the instruction that begins at an address, as the architecture of a
// thread decodes it, with its accesses, where the architecture has them. The error wraps
// sdk.ErrNotImplemented for one that does not disassemble, and target.ErrNoMemory where there
// is no code.
func (p *Process) Instruction(ctx context.Context, th *trace.Thread, address uint64) (instruction sdk.Instruction, err error) {
	s := p.stateOf(ctx, th)
	switch {
	case s == nil:
		return instruction, errors.New("the thread is not of this target")
	case s.arch == nil:
		return instruction, s.failure
	}
	d := &disassembly{Process: p, arch: s.arch, segment: p.Segment(address)}
	err = object.Guard(func() error {
		code := make([]byte, d.maxInstruction())
		n, err := d.readCode(address, code)
		if n == 0 {
			return fmt.Errorf("code at %#x: %w", address, err)
		}
		request := &sdk.DisassembleRequest{Address: address, Code: code[:n], Processor: s.Processor, Lanes: s.lanes()}
		first, err := s.arch.Instruction(ctx, request)
		switch {
		case err != nil:
			return err
		case first == nil:
			return fmt.Errorf("no instruction begins at %#x", address)
		}
		instruction = *first
		return nil
	})
	return instruction, err
}

// Locals returns the variables of the frame, by the function that has them, as FrameDetails has
// them.
func (a Activation) Locals(ctx context.Context, limits trace.ValueLimits) (list [][]trace.FrameVariable) {
	_ = object.Guard(func() error { // unreadable ones are left out
		if a.frame.module != nil {
			list = a.frame.localsOf(ctx, limits, nil)
		}
		return nil
	})
	return list
}

// Value reads a register of the frame that has at most 64 bits. It returns an error where the
// value is not known.
func (a Activation) Value(ctx context.Context, reg uint64) (uint64, error) {
	return a.frame.value(ctx, reg)
}
