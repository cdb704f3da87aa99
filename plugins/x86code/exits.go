// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// exits finds how code is left. The state before an instruction is its address plus 1 if the
// instruction before it wrote the top of the stack.
type exits struct {
	*codeflow.Exits[uint64]
	mode   *Mode
	effect Effect // of the last instruction that was read
}

// codeExits is nil where the code cannot be read.
func (m *Mode) codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	x := &exits{mode: m}
	if x.Exits = codeflow.NewExits(x, r, 1, MaxCode); x.Exits == nil {
		return nil
	}
	found := x.Find(r.PC)
	for _, list := range [][]uint64{found.Jumps, found.Slots} {
		for i := range list {
			list[i] = m.address(list[i])
		}
	}
	return found
}

// Instruction reads the instruction at an address.
func (x *exits) Instruction(address uint64) (decoded codeflow.Instruction, ok bool) {
	if x.effect, ok = x.mode.ReadEffect(x.Code[address:]); ok {
		decoded = x.effect.instruction()
	}
	return decoded, ok
}

// Join keeps the first state: code is followed once.
func (x *exits) Join(p *codeflow.Point[uint64], top *uint64, isFirst bool) bool {
	if isFirst {
		p.State = *top
	}
	return isFirst
}

// Apply records whether the instruction writes the top of the stack.
func (x *exits) Apply(address uint64, top *uint64) {
	e := &x.effect
	*top = 0
	if e.Kind == Push || e.HasMem && e.Mem.Base == SP && e.Mem.Offset == 0 && e.Kind != Load {
		*top = address + uint64(e.Length) + 1
	}
}

// Call follows calls inside the code.
func (x *exits) Call(address uint64, top *uint64) {
	if target := address + uint64(x.effect.Target); x.effect.IsDirect && x.IsInside(target) {
		x.Jump(x.Location(target), top)
	}
}

// Leave finds the slot through which a jump goes. A return to an address that was just
// written is a jump, as in thunks that keep processors from speculating.
func (x *exits) Leave(address uint64, top *uint64) {
	switch e := &x.effect; {
	case e.Kind == Return:
		x.Found.Open = *top == address+1
	case e.HasMem && e.Mem.IsRelative && !e.Mem.IsOpaque:
		x.Found.Slots = append(x.Found.Slots, x.Location(address)+uint64(e.Length)+uint64(e.Mem.Offset))
	case e.HasMem && x.mode.Word == 4 && e.Mem.Base == None && !e.Mem.IsOpaque:
		x.Found.Slots = append(x.Found.Slots, uint64(e.Mem.Offset)) //nolint:gosec // an address
	default:
		x.Found.Open = true
	}
}
