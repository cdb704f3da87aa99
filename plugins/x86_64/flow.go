package x86_64

import (
	"errors"
	"math"
)

// maxCode is the size of the largest function that is analysed.
const maxCode = 1 << 20

var errBudget = errors.New("the code takes more steps to read than any compiled function")

// A flow follows code from an instruction over every branch, and finds the
// state before each instruction that it reaches.
//
// A call is followed to the instruction after it, but it need not return: what
// follows a call that never does may belong to another part of the function,
// with another frame. An arrival from a call is weak. Where it contradicts
// what a jump says of the same instruction, the call is taken for one that
// does not return: an instruction of compiled code has one frame, whichever
// way it is reached.
type flow struct {
	code    []byte
	initial bool  // the memory at the beginning counts: its words are values
	start   state // at the beginning

	effects []effect
	index   []int32     // of the effect at an offset, plus one; negative: none there
	states  []*state    // before the instruction at an offset
	reached []int       // offsets that have a state, in the order of discovery
	weak    map[int]int // the call from which alone an offset was reached
	// noReturn has the offsets of calls that are known not to return.
	noReturn map[int]bool
	symbols  map[int]uint8

	strong, later []arrival // by jumps, and from calls
	frozen        []*state  // states that are final
	root          int       // the call behind which code is followed now; -1: none
	restart       bool      // a call that was followed does not return
	steps         int
}

// An arrival is a state that reaches an instruction.
type arrival struct {
	at   int
	from int // the call that it comes from; -1: none
	st   state
}

func newFlow(code []byte, start state, initial bool) *flow {
	return &flow{
		code: code, start: start, initial: initial,
		index:    make([]int32, len(code)),
		states:   make([]*state, len(code)),
		weak:     make(map[int]int),
		noReturn: make(map[int]bool),
		symbols:  make(map[int]uint8),
		root:     -1,
		steps:    min(4<<20, 1<<12+64*len(code)),
	}
}

// effect returns what the instruction at an offset does; nil where there is
// none.
func (f *flow) effect(at int) *effect {
	if i := f.index[at]; i != 0 {
		if i < 0 {
			return nil
		}
		return &f.effects[i-1]
	}
	e, ok := readEffect(f.code[at:])
	if !ok {
		f.index[at] = -1
		return nil
	}
	f.effects = append(f.effects, e)
	f.index[at] = int32(len(f.effects))
	return &f.effects[len(f.effects)-1]
}

// run follows the code from entry, through jumps and calls, until nothing
// changes.
func (f *flow) run(entry int) error {
	for {
		f.begin(entry)
		if err := f.drain(); err != nil {
			return err
		}
		if !f.restart {
			return nil
		}
	}
}

// begin forgets what is known of the code, but for calls that do not return,
// and puts the start at entry.
func (f *flow) begin(entry int) {
	for _, at := range f.reached {
		f.states[at] = nil
	}
	f.reached = f.reached[:0]
	clear(f.weak)
	f.strong = append(f.strong[:0], arrival{entry, -1, f.start})
	f.later = f.later[:0]
	f.restart = false
}

// drain follows all that waits to be followed.
func (f *flow) drain() error {
	for !f.restart {
		if err := f.settle(); err != nil {
			return err
		}
		if len(f.later) == 0 {
			return nil
		}
		f.strong = append(f.strong, f.later[len(f.later)-1])
		f.later = f.later[:len(f.later)-1]
	}
	return nil
}

// settle follows what waits, and what jumps reach from there; not what follows
// calls.
func (f *flow) settle() error {
	for len(f.strong) > 0 && !f.restart {
		next := f.strong[len(f.strong)-1]
		f.strong = f.strong[:len(f.strong)-1]
		if err := f.walk(next); err != nil {
			return err
		}
	}
	return nil
}

// walk follows straight-line code from an arrival until it ends or reaches
// what is known already.
func (f *flow) walk(a arrival) error {
	at, from, st := a.at, a.from, a.st
	for {
		if at < 0 || at >= len(f.code) {
			return nil
		}
		changed := f.arrive(at, from, &st)
		if !changed || f.restart {
			return nil
		}
		if f.steps--; f.steps < 0 {
			return errBudget
		}
		e := f.effect(at)
		if e == nil {
			return nil
		}
		st = *f.states[at]
		next := at + int(e.length)
		if !e.filler {
			from = -1
		}
		switch e.kind {
		case effectReturn, effectStop:
			return nil
		case effectJump:
			if !e.direct {
				return nil
			}
			next = f.target(at, e)
		case effectBranch:
			st.apply(e, 0, f.initial)
			f.strong = append(f.strong, arrival{f.target(at, e), -1, st})
			at = next
			continue
		case effectCall:
			if e.direct && f.target(at, e) == next {
				st.push(value{}, 8, f.initial) // call to the next instruction: reads the PC
				break
			}
			if target := f.target(at, e); e.direct && target > 0 && !f.initial {
				// A function inside this one, with a frame of its own.
				f.strong = append(f.strong, arrival{target, -1, f.start})
			}
			if f.noReturn[at] {
				return nil
			}
			st.apply(e, 0, f.initial)
			f.later = append(f.later, arrival{next, at, st})
			return nil
		default:
			st.apply(e, f.symbol(at, e), f.initial)
		}
		at = next
	}
}

// target is the offset that a direct branch at an offset goes to; -1 for one
// outside the code.
func (f *flow) target(at int, e *effect) int {
	t := int64(at) + e.target
	if t < 0 || t >= int64(len(f.code)) {
		return -1
	}
	return int(t)
}

// symbol is the one that an instruction makes.
func (f *flow) symbol(at int, e *effect) uint8 {
	if e.kind != effectAlign {
		return 0
	}
	s, ok := f.symbols[at]
	if !ok && len(f.symbols) < math.MaxUint8-firstFresh {
		s = uint8(firstFresh + len(f.symbols))
		f.symbols[at] = s
	}
	return s
}

// arrive joins a state into that of the instruction at an offset. changed says
// that the instruction must be followed (again).
func (f *flow) arrive(at, from int, st *state) (changed bool) {
	if f.frozen != nil && f.frozen[at] != nil {
		return false
	}
	old := f.states[at]
	if old == nil {
		s := *st
		f.states[at] = &s
		f.reached = append(f.reached, at)
		if from >= 0 {
			f.weak[at] = from
		}
		return true
	}
	call, isWeak := f.weak[at]
	if from < 0 {
		delete(f.weak, at)
	}
	if old.equal(st) {
		return false
	}
	both := join(old, st, f.initial)
	if f.lost(old, st, &both) {
		switch {
		case from >= 0 && from != call:
			f.noReturn[from] = true
			return false
		case from < 0 && isWeak:
			f.noReturn[call] = true
			f.restart = true
			return false
		case from < 0 && f.root >= 0:
			// Before this call was taken to return, there was no contradiction.
			f.noReturn[f.root] = true
			f.restart = true
			return false
		}
	}
	if both.equal(old) {
		return false
	}
	f.states[at] = &both
	return true
}

// lost says whether joining two states loses what one of them knew of the
// frame.
func (f *flow) lost(a, b, both *state) bool {
	if a.gpr[gprSP] == b.gpr[gprSP] && f.initial {
		return false
	}
	return (f.knows(a)|f.knows(b))&^f.knows(both) != 0
}

// knows returns what a state knows of its frame, a bit each: the caller's
// preserved registers, the CFA and the return address.
func (f *flow) knows(s *state) (bits uint32) {
	if f.initial {
		// The preserved registers may hold anything by now.
		if s.gpr[gprSP].kind != unknown {
			bits = 1
		}
		return bits
	}
	v := s.view(false)
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
