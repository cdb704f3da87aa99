// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"math"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// MaxCode is the size of the largest function that is analysed.
const MaxCode = 1 << 18

// flow follows code from an instruction over every branch, and finds the
// state before each instruction that it reaches. Addresses are offsets in the code.
type flow struct {
	*codeflow.Function[state]
	code  []byte
	mode  *Mode
	start state   // at the beginning
	order []uint8 // of the registers by which frames are found
	// removed has what callees of 32-bit code remove from the stack, by the address of the call.
	removed map[uint64]removal
	pushed  map[int]int64 // see pushedFor
	body    *int64        // see bodyLevel

	effects []Effect
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

func (m *Mode) newFlow(pieces *codeflow.Pieces, start state, isAhead bool) *flow {
	f := &flow{mode: m, code: pieces.Code, start: start, order: m.Search, symbols: make(map[uint64]uint8)}
	if m.Word == 4 {
		f.removed, f.pushed = make(map[uint64]removal), make(map[int]int64)
		if level, ok := m.bodyLevel(f.code); ok && !isAhead {
			f.body = &level
		}
	}
	f.Function = codeflow.NewFunction(f, pieces, 1, codeflow.Limits{Steps: min(8<<20, 1<<14+128*len(f.code)), Calls: maxCalls})
	f.IsAhead = isAhead
	return f
}

// effect returns the effect of the instruction at an offset; nil where there is none.
func (f *flow) effect(address uint64) *Effect {
	i := f.index.Put(address)
	if *i == 0 {
		e, ok := f.mode.ReadEffect(f.code[address:])
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
var flowKinds = [...]codeflow.Kind{Call: codeflow.Call, Return: codeflow.Return, Jump: codeflow.Jump,
	Branch: codeflow.Branch, Stop: codeflow.Stop}

func (e *Effect) instruction() codeflow.Instruction {
	return codeflow.Instruction{Kind: flowKinds[e.Kind], Length: e.Length, IsDirect: e.IsDirect, Distance: e.Target}
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
	if err := f.followTables(); err != nil {
		return err
	}
	if f.mode.Word == 4 && !f.IsAhead {
		f.proveDepths()
	}
	return nil
}

// Examine tries a region, and the regions behind a number of calls. Where these are
// followed too, it is evidence that the stack pointer becomes the one that the function
// jumps through tables with.
func (f *flow) Examine(a *arrival, calls int) codeflow.Trial {
	f.begin, f.level = a.State.gpr[SP], value{}
	if s := f.tableState(); s != nil && s.gpr[SP] != f.begin && calls > 0 {
		f.level = s.gpr[SP]
	}
	if f.mode.Word == 4 {
		return f.examineRemoved(a, calls)
	}
	return f.try(a, calls)
}

// Rank has calls without arguments on the stack examined first: the code after them may
// show through which tables the function jumps.
func (f *flow) Rank(a *arrival) int {
	if f.mode.pushedBefore(f.code, int(a.Address)) > 0 {
		return 1
	}
	return 0
}

// Guess accepts a region without evidence if it may follow its call. In a function that
// jumps through tables, they may lead there: then its frame must be the tables' frame, or
// become it, as after a call whose arguments were pushed. In other functions it must not
// follow a call whose arguments stay on the stack.
func (f *flow) Guess(a *arrival, _ codeflow.Trial) codeflow.Decision {
	if r, ok := f.removed[a.Source]; ok && !r.isSure && f.body != nil {
		a.State.gpr[SP] = value{} // the frame is lost unless another register has it
	}
	isPlausible := f.mode.hasDroppedArguments
	if len(f.tables) > 0 {
		table := f.tableState()
		isPlausible = func([]byte, int) bool { return table != nil && a.State.gpr[SP] == table.gpr[SP] }
	}
	if isPlausible(f.code, int(a.Address)) {
		return codeflow.Believed
	}
	return codeflow.Refuted
}

// Apply makes a state the one after an instruction.
func (f *flow) Apply(address uint64, st *state) {
	e := f.effect(address)
	if e.Kind == Call && f.mode.Word == 4 {
		f.applyCall32(address, e, st)
		return
	}
	st.apply(f.mode, e, f.symbol(address, e), f.IsAhead)
}

// Call takes a call of the next instruction for a read of the PC. A call inside the
// function enters another function, with a frame of its own.
func (f *flow) Call(address, next uint64, st *state) (continues bool) {
	in := f.effect(address).instruction()
	target, isInside := f.Target(address, &in)
	switch {
	case isInside && target == next:
		st.push(f.mode, value{}, f.mode.Word, f.IsAhead)
		return true
	case isInside && target > 0 && !f.IsAhead && f.Trial() == nil && f.Point(target) == nil:
		f.Arrive(target, &f.start)
	}
	return f.Function.Call(address, next, st)
}

// Leave judges a region by how it leaves the function: by a return, or by a jump that may
// be a tail call.
func (f *flow) Leave(offset uint64, st *state) {
	e, t, sp := f.effect(offset), f.Trial(), st.gpr[SP]
	switch {
	case e == nil, e.Kind == Stop:
	case e.Kind == Jump && !e.IsDirect:
		if f.isThroughTable(e, st) {
			f.tables = append(f.tables, offset)
		}
	case t == nil, f.IsAhead:
	case sp == entryValue(SP):
		t.IsConfirmed = true
	case e.Kind == Return && sp.kind == address:
		t.IsContradicted = true
	}
}

// symbol is the symbol that an instruction makes.
func (f *flow) symbol(offset uint64, e *Effect) uint8 {
	if e.Kind != Align {
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
		sp := st.gpr[SP]
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
		return a.gpr[SP] != b.gpr[SP]
	}
	return (f.knows(a)|f.knows(b))&^f.knows(both) != 0
}

// IsWrongReturn reports whether an instruction is a return where the stack pointer is not
// at the return address.
func (f *flow) IsWrongReturn(p *point) bool {
	e, sp := f.effect(p.Address), p.State.gpr[SP]
	return e != nil && e.Kind == Return && sp.kind != unknown && sp != entryValue(SP)
}

// Row is the row of an instruction.
func (f *flow) Row(p *point) (row cfi.Row, ok bool) {
	v := p.State.view(f.mode, f.order, f.effect(p.Address).Kind == Call)
	return v.row(f.mode), v.cfa.Kind != cfi.NoCFA
}

// knows returns the known parts of a state's frame, a bit each: the CFA, the caller's
// preserved registers and the return address.
func (f *flow) knows(s *state) (bits uint32) {
	v := s.view(f.mode, f.mode.Search, false)
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
