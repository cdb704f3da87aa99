// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// Kind is how an instruction passes control on.
type Kind uint8

// The kinds of instructions.
const (
	Ordinary Kind = iota // the next instruction follows
	Call                 // the next instruction follows if the callee returns
	Branch               // to the target, or the next instruction follows
	Jump                 // to the target
	Return
	Stop // nothing is executed after it
)

// Instruction is the part of an instruction that every CPU has.
type Instruction struct {
	Kind     Kind
	Length   uint8 // in addresses
	IsDirect bool  // a call, branch or jump that encodes its target
	Distance int64 // of the target of a direct one from the instruction, in bytes
}

// CPU has the operations of a CPU's instructions and their effects on S, the state before an
// instruction. The type that implements it embeds a Function, whose methods CPUs have in
// common; a CPU that differs in one has a method of its own.
type CPU[S any] interface {
	Code[S]
	Decider[S]

	// Instruction reads the instruction at an address; ok is false where it cannot be read.
	Instruction(address uint64) (instruction Instruction, ok bool)
	// Apply turns s into the state after an instruction; after a call, when it has returned.
	Apply(address uint64, s *S)
	// Leave looks for evidence where the code ends or leaves the function: at a return, a jump
	// that does not lead to an instruction of the function, and where nothing is executed.
	Leave(address uint64, s *S)
	// Equal compares two states.
	Equal(a, b *S) bool
	// Merge returns the state with everything that both a and b know, and whether that is a.
	// hasLost is true if it lost what one of them knew of the frame: they are states of
	// different frames. It counts only in a trial.
	Merge(a, b *S) (both S, isA, hasLost bool)
	// IsWrongReturn reports whether a return has another frame than the function began with.
	// The conclusions that led there are wrong: a call before it does not return, or it is no
	// plain function.
	IsWrongReturn(p *Point[S]) bool
	// Row returns the row of the instruction at a point; ok is false where its frame is not certain.
	Row(p *Point[S]) (row cfi.Row, ok bool)

	// Call executes a call, and defers the code after it. It goes on there at once where the
	// instruction only looks like a call.
	Call(address, next uint64, s *S) (continues bool)
	// Pass turns s into the state where a branch is not taken; ok is false where it is always
	// taken.
	Pass(address uint64, s *S) (ok bool)
	// Agrees is false if s, with which a trial leads to a known point, contradicts that point
	// although it has the same frame.
	Agrees(p *Point[S], s *S) bool
	// Examine tries an arrival, through up to calls calls.
	Examine(a *Arrival[S], calls int) Trial
	// Guess decides about an arrival without evidence when there is none left for any other.
	Guess(a *Arrival[S], t Trial) Decision
}

// Function follows the code of one function, or the code around a PC.
//
// A call leads to the code after it only if it returns. Another part of the function, with
// another frame, may lie after a call that never does. But an instruction of compiled code has
// one frame, however it is reached: the code after a call is believed when it leads to known
// code, or to a return, with the right frame, and refuted when it contradicts known code.
type Function[S any] struct {
	*Flow[S]
	// IsAhead is set where the code is followed from a PC on: registers and memory are as at
	// that PC.
	IsAhead bool

	cpu      CPU[S]
	pieces   *Pieces
	shift    uint8  // an address is 1<<shift bytes
	size     uint64 // of the code, in addresses
	limits   Limits
	refuted  map[uint64]bool   // arrivals
	previous map[uint64]uint64 // the call before each call, see NearestReturns
}

// Limits bound how far a Function is followed.
type Limits struct {
	Steps int // steps left
	Calls int // calls in a row that are assumed to return while evidence is looked for
}

// NewFunction returns a function for a CPU. unit is the size in bytes of the instructions that
// addresses count, or 1.
func NewFunction[S any](cpu CPU[S], code *Pieces, unit uint64, limits Limits) *Function[S] {
	f := &Function[S]{cpu: cpu, pieces: code, shift: uint8(bits.TrailingZeros64(unit)), limits: limits} //nolint:gosec // at most 64
	f.size = uint64(len(code.Code)) >> f.shift
	f.Flow = ByInstruction[S](cpu, &f.limits.Steps)
	return f
}

// IsInside reports whether an address is in the code.
func (f *Function[S]) IsInside(address uint64) bool { return address < f.size }

// IsRefuted reports whether an arrival was decided to be none.
func (f *Function[S]) IsRefuted(address uint64) bool { return f.refuted[address] }

// StepsLeft returns how many steps may still be taken.
func (f *Function[S]) StepsLeft() int { return f.limits.Steps }

// Target returns the target of a direct call, branch or jump; ok is false outside of the code.
func (f *Function[S]) Target(address uint64, instruction *Instruction) (target uint64, ok bool) {
	if !instruction.IsDirect {
		return 0, false
	}
	target, ok = f.pieces.Target(address<<f.shift, uint64(instruction.Distance)) //nolint:gosec // modular
	target >>= f.shift
	return target, ok && f.IsInside(target)
}

// Copy copies a state.
func (f *Function[S]) Copy(dst, src *S) { *dst = *src }

// Step executes an instruction.
func (f *Function[S]) Step(address uint64, s *S) (next uint64, continues bool) {
	instruction, ok := f.cpu.Instruction(address)
	if !ok {
		f.cpu.Leave(address, s)
		return address, false
	}
	next = address + uint64(instruction.Length)
	target, isInside := f.Target(address, &instruction)
	switch instruction.Kind {
	case Return, Stop, Jump:
		if instruction.Kind == Jump && isInside {
			return target, true
		}
		f.cpu.Leave(address, s)
		return next, false
	case Call:
		return next, f.cpu.Call(address, next, s) && f.IsInside(next)
	case Branch:
		f.cpu.Apply(address, s)
		if isInside {
			f.Arrive(target, s)
		}
		return next, f.cpu.Pass(address, s) && f.IsInside(next)
	}
	f.cpu.Apply(address, s)
	return next, f.IsInside(next)
}

// Call defers the code after a call.
func (f *Function[S]) Call(address, next uint64, s *S) (continues bool) {
	f.cpu.Apply(address, s)
	if f.IsInside(next) {
		f.Defer(next, address, s)
	}
	return false
}

// Pass returns true: a branch need not be taken.
func (f *Function[S]) Pass(uint64, *S) bool { return true }

// Join joins a state into the state of an instruction. A trial does not follow known code.
func (f *Function[S]) Join(p *Point[S], s *S, isFirst bool) (hasChanged bool) {
	if isFirst {
		p.State = *s
		return true
	}
	t, old := f.Trial(), &p.State
	if f.cpu.Equal(old, s) {
		if f.IsKnown(p) {
			t.IsConfirmed = true
		}
		return false
	}
	both, isOld, hasLost := f.cpu.Merge(old, s)
	switch {
	case t != nil && hasLost:
		t.IsContradicted = true
	case f.IsKnown(p):
		t.IsConfirmed = true
		t.IsContradicted = t.IsContradicted || !f.cpu.Agrees(p, s)
	case !isOld:
		p.State = both
		return true
	}
	return false
}

// Agrees returns true: the same frame is enough.
func (f *Function[S]) Agrees(*Point[S], *S) bool { return true }

// Examine tries an arrival with all steps that are left.
func (f *Function[S]) Examine(a *Arrival[S], calls int) Trial {
	return f.Try(a, calls, f.limits.Steps)
}

// Decide decides by the evidence of a trial whether a call returns.
func (f *Function[S]) Decide(a *Arrival[S], isLast bool) (d Decision) {
	calls := 0
	if isLast {
		calls = f.limits.Calls
	}
	switch t := f.cpu.Examine(a, calls); {
	case t.IsContradicted:
		d = Refuted
	case t.IsConfirmed:
		d = Believed
	case isLast:
		d = f.cpu.Guess(a, t)
	}
	if d == Refuted {
		if f.refuted == nil {
			f.refuted = make(map[uint64]bool)
		}
		f.refuted[a.Address] = true
	}
	return d
}

// Rank gives all arrivals one rank: they are decided about together.
func (f *Function[S]) Rank(*Arrival[S]) int { return 0 }

// Guess believes that a call returns.
func (f *Function[S]) Guess(*Arrival[S], Trial) Decision { return Believed }

// Edges returns where an instruction goes on, leaving out calls.
func (f *Function[S]) Edges(address uint64) (e Edges) {
	instruction, ok := f.cpu.Instruction(address)
	if !ok {
		return e
	}
	e.Next = address + uint64(instruction.Length)
	e.Continues = instruction.Kind == Ordinary || instruction.Kind == Branch
	if instruction.Kind == Branch || instruction.Kind == Jump {
		e.Target, e.Jumps = f.Target(address, &instruction)
	}
	return e
}

// Contradicted returns the instructions that lead to a wrong return.
func (f *Function[S]) Contradicted() map[uint64]bool {
	var wrong []*Point[S]
	for _, p := range f.Found() {
		if f.cpu.IsWrongReturn(p) {
			wrong = append(wrong, p)
		}
	}
	return f.Reaching(wrong, f.Edges)
}

// Rows returns the rows of every instruction whose frame is certain, in the order of addresses.
func (f *Function[S]) Rows() []cfi.Row {
	contradicted := f.Contradicted()
	var rows Rows
	for p := range f.All() {
		instruction, ok := f.cpu.Instruction(p.Address)
		if !ok || contradicted[p.Address] {
			continue
		}
		start, isInPiece := f.pieces.Address(p.Address << f.shift)
		last, isWhole := f.pieces.Address((p.Address+uint64(instruction.Length))<<f.shift - 1)
		if !isInPiece || !isWhole {
			continue // between two pieces
		}
		if row, ok := f.cpu.Row(p); ok {
			row.Start, row.End = start, last+1
			rows.Add(&row)
		}
	}
	slices.SortStableFunc(rows, func(a, b cfi.Row) int { return cmp.Compare(a.Start, b.Start) })
	return rows
}

// NearestReturns follows the code from an arrival, and calls visit for the returns that jumps
// alone lead to; where none of them shows a frame, for the returns after one call, and so on:
// the fewer calls are assumed to return, the surer the answer. visit gets the call that a
// return comes after, or None. isSure is true where there is no such call.
func (f *Function[S]) NearestReturns(start *Arrival[S], visit func(p *Point[S], call uint64) (isFrame bool, err error)) (isSure bool, err error) {
	seen, isFound := 0, false
	follow := func(a *Arrival[S]) error {
		waiting := len(f.Deferred())
		if err := f.Follow(a); err != nil {
			return err
		}
		f.setPrevious(f.Deferred()[waiting:], a.Source)
		for ; seen < len(f.Found()); seen++ {
			p := f.Found()[seen]
			if instruction, ok := f.cpu.Instruction(p.Address); !ok || instruction.Kind != Return {
				continue
			}
			isFrame, err := visit(p, a.Source)
			if err != nil {
				return err
			}
			isFound = isFound || isFrame
		}
		return nil
	}
	if err := follow(start); err != nil {
		return false, err
	}
	isSure = isFound
	for !isFound && len(f.Deferred()) > 0 {
		for _, a := range f.TakeDeferred(0) {
			if t := f.cpu.Examine(&a, 0); f.Err() == nil && (t.IsContradicted || t.IsCut) {
				continue
			}
			if err := follow(&a); err != nil {
				return false, err
			}
		}
	}
	return isSure, nil
}

// setPrevious records call as the call before each of calls.
func (f *Function[S]) setPrevious(calls []Arrival[S], call uint64) {
	if f.previous == nil {
		f.previous = make(map[uint64]uint64)
	}
	for i := range calls {
		if _, ok := f.previous[calls[i].Source]; !ok {
			f.previous[calls[i].Source] = call
		}
	}
}

// Previous returns the call before a call that NearestReturns reached, or None.
func (f *Function[S]) Previous(call uint64) uint64 { return f.previous[call] }
