// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"math"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 18

// flow follows code from an instruction over every branch, and finds the
// state before each instruction that it reaches. Addresses are offsets in the code.
type flow struct {
	*codeflow.Function[state]
	code  []byte
	start state            // at the beginning
	order *[gprCount]uint8 // of the registers by which frames are found

	effects []effect
	index   codeflow.Table[int32] // of the effect at an offset, plus one; negative: none there
	symbols map[uint64]uint8
	tables  []uint64 // offsets of the jumps through tables

	// Of a trial: the stack pointer that it began with, and the one that it may reach
	// without ever having been below the first.
	begin, level value
}

// arrival is a state that reaches an instruction.
type arrival = codeflow.Arrival[state]

// point is an instruction that was reached.
type point = codeflow.Point[state]

// maxCalls is the number of calls in a row that are assumed to return to find evidence.
const maxCalls = 8

func newFlow(pieces *codeflow.Pieces, start state, isAhead bool) *flow {
	f := &flow{code: pieces.Code, start: start, order: &searchOrder, symbols: make(map[uint64]uint8)}
	f.Function = codeflow.NewFunction(f, pieces, 1, codeflow.Limits{Steps: min(8<<20, 1<<14+128*len(f.code)), Calls: maxCalls})
	f.IsAhead = isAhead
	return f
}

// effect returns the effect of the instruction at an offset; nil where there is none.
func (f *flow) effect(address uint64) *effect {
	i := f.index.Put(address)
	if *i == 0 {
		e, ok := readEffect(f.code[address:])
		if !ok {
			*i = -1
			return nil
		}
		f.effects = append(f.effects, e)
		*i = int32(len(f.effects))
	}
	if *i < 0 {
		return nil
	}
	return &f.effects[*i-1]
}

// flowKinds has the effects that do not lead to the next instruction alone.
var flowKinds = [...]codeflow.Kind{effectCall: codeflow.Call, effectReturn: codeflow.Return, effectJump: codeflow.Jump,
	effectBranch: codeflow.Branch, effectStop: codeflow.Stop}

func (e *effect) instruction() codeflow.Instruction {
	return codeflow.Instruction{Kind: flowKinds[e.kind], Length: e.length, IsDirect: e.direct, Distance: e.target}
}

// Instruction reads the instruction at an offset.
func (f *flow) Instruction(address uint64) (decoded codeflow.Instruction, ok bool) {
	e := f.effect(address)
	if e == nil {
		return decoded, false
	}
	return e.instruction(), true
}

// run follows the code from its first instruction, through jumps, calls and tables.
//
// Regions after calls that lead to known code or to a return with the right frame are
// accepted first, and regions that contradict the frame never. Regions without evidence
// come last.
func (f *flow) run() error {
	if err := f.Follow(&arrival{Source: codeflow.None, State: f.start}); err != nil {
		return err
	}
	if err := f.Resume(f); err != nil {
		return err
	}
	return f.followTables()
}

// Examine tries a region, and the regions behind a number of calls. Where these are
// followed too, it is evidence that the stack pointer becomes the one that the function
// jumps through tables with.
func (f *flow) Examine(a *arrival, calls int) codeflow.Trial {
	f.begin, f.level = a.State.gpr[gprSP], value{}
	if s := f.tableState(); s != nil && s.gpr[gprSP] != f.begin && calls > 0 {
		f.level = s.gpr[gprSP]
	}
	tables := len(f.tables)
	t := f.Try(a, calls, math.MaxInt)
	f.tables = f.tables[:tables]
	return t
}

// Rank has calls without arguments on the stack examined first: the code after them may
// show through which tables the function jumps.
func (f *flow) Rank(a *arrival) int {
	if pushedBefore(f.code, int(a.Address)) > 0 {
		return 1
	}
	return 0
}

// Guess accepts a region without evidence if it may follow its call. In a function that
// jumps through tables, they may lead there: then its frame must be the tables' frame, or
// become it, as after a call whose arguments were pushed. In other functions it must not
// follow a call whose arguments stay on the stack.
func (f *flow) Guess(a *arrival, _ codeflow.Trial) codeflow.Decision {
	isPlausible := hasDroppedArguments
	if len(f.tables) > 0 {
		table := f.tableState()
		isPlausible = func([]byte, int) bool { return table != nil && a.State.gpr[gprSP] == table.gpr[gprSP] }
	}
	if isPlausible(f.code, int(a.Address)) {
		return codeflow.Believed
	}
	return codeflow.Refuted
}

// Apply makes a state the one after an instruction.
func (f *flow) Apply(address uint64, st *state) {
	e := f.effect(address)
	st.apply(e, f.symbol(address, e), f.IsAhead)
}

// Call takes a call of the next instruction for a read of the PC. A call inside the
// function enters another function, with a frame of its own.
func (f *flow) Call(address, next uint64, st *state) (continues bool) {
	in := f.effect(address).instruction()
	target, isInside := f.Target(address, &in)
	switch {
	case isInside && target == next:
		st.push(value{}, 8, f.IsAhead)
		return true
	case isInside && target > 0 && !f.IsAhead && f.Trial() == nil && f.Point(target) == nil:
		f.Arrive(target, &f.start)
	}
	return f.Function.Call(address, next, st)
}

// Leave judges a region by how it leaves the function: by a return, or by a jump that may
// be a tail call.
func (f *flow) Leave(offset uint64, st *state) {
	e, t, sp := f.effect(offset), f.Trial(), st.gpr[gprSP]
	switch {
	case e == nil, e.kind == effectStop:
	case e.kind == effectJump && !e.direct:
		if f.isThroughTable(e, st) {
			f.tables = append(f.tables, offset)
		}
	case t == nil, f.IsAhead:
	case sp == entryValue(gprSP):
		t.IsConfirmed = true
	case e.kind == effectReturn && sp.kind == address:
		t.IsContradicted = true
	}
}

// symbol is the symbol that an instruction makes.
func (f *flow) symbol(offset uint64, e *effect) uint8 {
	if e.kind != effectAlign {
		return 0
	}
	s, ok := f.symbols[offset]
	if !ok && len(f.symbols) < math.MaxUint8-firstFresh {
		s = uint8(firstFresh + len(f.symbols))
		f.symbols[offset] = s
	}
	return s
}

// Join joins a state into an instruction's. The note of a trial is that the stack pointer
// was below its initial value.
func (f *flow) Join(p *point, st *state, isFirst bool) (hasChanged bool) {
	if t := f.Trial(); t != nil {
		sp := st.gpr[gprSP]
		isBelow := sp.kind != address || sp.base != f.begin.base || sp.off < f.begin.off
		t.Note = t.Note || isBelow
		t.IsConfirmed = t.IsConfirmed || sp == f.level && sp.kind != unknown && !t.Note
	}
	return f.Function.Join(p, st, isFirst)
}

// Equal compares two states.
func (f *flow) Equal(a, b *state) bool { return a.equal(b) }

// Merge keeps what two states have in common.
func (f *flow) Merge(a, b *state) (both state, isA, hasLost bool) {
	both = join(a, b, f.IsAhead)
	return both, both.equal(a), f.Trial() != nil && f.hasLost(a, b, &both)
}

// hasLost reports whether joining two states loses a fact that one of them had about the
// frame.
func (f *flow) hasLost(a, b, both *state) bool {
	if f.IsAhead {
		// The preserved registers may have any value by now.
		return a.gpr[gprSP] != b.gpr[gprSP]
	}
	return (a.knows()|b.knows())&^both.knows() != 0
}

// IsWrongReturn reports whether an instruction is a return where the stack pointer is not
// at the return address.
func (f *flow) IsWrongReturn(p *point) bool {
	e, sp := f.effect(p.Address), p.State.gpr[gprSP]
	return e != nil && e.kind == effectReturn && sp.kind != unknown && sp != entryValue(gprSP)
}

// Row is the row of an instruction.
func (f *flow) Row(p *point) (row cfi.Row, ok bool) {
	v := p.State.view(f.order, f.effect(p.Address).kind == effectCall)
	return v.row(), v.cfa.Kind != cfi.NoCFA
}

// knows returns the known parts of a state's frame, a bit each: the CFA, the caller's
// preserved registers and the return address.
func (s *state) knows() (bits uint32) {
	v := s.view(&searchOrder, false)
	if v.cfa.Kind == 0 {
		return 0
	}
	bits = 1
	for i := range v.found {
		if v.found[i] {
			bits |= 2 << i
		}
	}
	return bits
}
