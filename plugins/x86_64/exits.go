// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// exits finds how code is left. The state before an instruction is its address plus 1 if the
// instruction before it wrote the top of the stack.
type exits struct {
	*codeflow.Exits[uint64]
	effect effect // of the last instruction that was read
}

// codeExits is nil where the code cannot be read.
func codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	x := &exits{}
	if x.Exits = codeflow.NewExits(x, r, 1, maxCode); x.Exits == nil {
		return nil
	}
	return x.Find(r.PC)
}

// Instruction reads the instruction at an address.
func (x *exits) Instruction(address uint64) (decoded codeflow.Instruction, ok bool) {
	if x.effect, ok = readEffect(x.Code[address:]); ok {
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
	if e.kind == effectPush || e.hasMem && e.mem.base == gprSP && e.mem.offset == 0 && e.kind != effectLoad {
		*top = address + uint64(e.length) + 1
	}
}

// Call follows calls inside the code.
func (x *exits) Call(address uint64, top *uint64) {
	if target := address + uint64(x.effect.target); x.effect.direct && x.IsInside(target) {
		x.Jump(x.Location(target), top)
	}
}

// Leave finds the slot through which a jump goes. A return to an address that was just
// written is a jump, as in thunks that keep processors from speculating.
func (x *exits) Leave(address uint64, top *uint64) {
	switch e := &x.effect; {
	case e.kind == effectReturn:
		x.Found.Open = *top == address+1
	case e.hasMem && e.mem.rip && !e.mem.opaque:
		x.Found.Slots = append(x.Found.Slots, x.Location(address)+uint64(e.length)+uint64(e.mem.offset))
	default:
		x.Found.Open = true
	}
}
