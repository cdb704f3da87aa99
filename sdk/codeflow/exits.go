// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// ExitCode is code of a CPU whose exits are looked for. S is the state before an instruction:
// what decides where it jumps. The type that implements it embeds an Exits.
type ExitCode[S any] interface {
	Code[S]

	// Instruction reads the instruction at an address; ok is false where it cannot be read.
	Instruction(address uint64) (instruction Instruction, ok bool)
	// Apply turns s into the state after an instruction.
	Apply(address uint64, s *S)
	// Call looks at a call, before it is executed.
	Call(address uint64, s *S)
	// Leave adds the target of a return, or of a jump that is not direct, to the exits.
	Leave(address uint64, s *S)
}

// Exits collects the exits of code other than returns. Addresses are offsets in the code, in
// units.
type Exits[S any] struct {
	*Flow[S]
	Found     sdk.CodeExits
	Start     uint64 // where the code lies
	Code      []byte
	cpu       ExitCode[S]
	shift     uint8 // an address is 1<<shift bytes
	isBounded bool
	steps     int
}

// NewExits returns exits for code of at most maxCode bytes; nil where it cannot be read. unit is the
// size of instructions that addresses count, or 1.
func NewExits[S any](cpu ExitCode[S], r *sdk.CodeRange, unit uint64, maxCode int) *Exits[S] {
	size, skipped := uint64(len(r.Code)), -r.Start%unit
	if r.PC-r.Start >= size || r.PC-r.Start < skipped || len(r.Code) > maxCode || r.Start+size < r.Start || r.PC%unit != 0 {
		return nil
	}
	x := &Exits[S]{cpu: cpu, Start: r.Start + skipped, Code: r.Code[skipped:], isBounded: r.Bounded,
		shift: uint8(bits.TrailingZeros64(unit)), steps: 64 + 2*len(r.Code)} //nolint:gosec // at most 64
	x.Flow = ByInstruction[S](cpu, &x.steps) // a state changes few times
	return x
}

// Find follows the code from a PC over every branch.
func (x *Exits[S]) Find(pc uint64) *sdk.CodeExits {
	if x.Follow(&Arrival[S]{Address: (pc - x.Start) >> x.shift}) != nil {
		x.Found.Open = true
	}
	for _, list := range [...]*[]uint64{&x.Found.Jumps, &x.Found.Slots} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return &x.Found
}

// Copy copies a state.
func (x *Exits[S]) Copy(dst, src *S) { *dst = *src }

// Call does nothing: a callee returns, or is not one of the code's exits.
func (x *Exits[S]) Call(uint64, *S) {}

// Location returns the address of an instruction in the target.
func (x *Exits[S]) Location(address uint64) uint64 { return x.Start + address<<x.shift }

// IsInside reports whether there is a whole instruction at an address.
func (x *Exits[S]) IsInside(address uint64) bool { return address < uint64(len(x.Code))>>x.shift }

// Step follows an instruction. Nothing more is followed once the code may go anywhere.
func (x *Exits[S]) Step(address uint64, s *S) (next uint64, continues bool) {
	if x.Found.Open || !x.IsInside(address) {
		x.Found.Open = true
		return address, false
	}
	instruction, ok := x.cpu.Instruction(address)
	if !ok {
		x.Found.Open = true
		return address, false
	}
	next = address + uint64(instruction.Length)
	target := x.Location(address) + uint64(instruction.Distance) //nolint:gosec // modular
	switch instruction.Kind {
	case Stop:
		return next, false
	case Return, Jump:
		if instruction.Kind == Jump && instruction.IsDirect {
			x.Jump(target, s)
		} else {
			x.cpu.Leave(address, s)
		}
		return next, false
	case Branch:
		x.Jump(target, s)
	case Call:
		if x.cpu.Call(address, s); !x.IsInside(next) && x.isBounded {
			return next, false // the function ends with a call that does not return
		}
	}
	x.cpu.Apply(address, s)
	if !x.IsInside(next) {
		x.Jump(x.Location(next), s)
		return next, false
	}
	return next, true
}

// Jump follows a jump to where an instruction may lie, or adds it to the exits.
func (x *Exits[S]) Jump(target uint64, s *S) {
	offset, unit := target-x.Start, uint64(1)<<x.shift
	switch address := offset >> x.shift; {
	case offset >= uint64(len(x.Code)) && x.Start-target >= unit: // nor before the first instruction
		x.Found.Jumps = append(x.Found.Jumps, target)
	case offset%unit == 0 && x.IsInside(address):
		x.Arrive(address, s)
	default:
		x.Found.Open = true
	}
}
