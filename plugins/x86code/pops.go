// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"math"

	"github.com/unwindd/unwindd/sdk/codeflow"
)

// In 32-bit code a callee may remove its arguments from the stack: functions of Windows
// (stdcall, fastcall, thiscall) do, and functions of the psABI remove the address of the
// structure that they return (2.2.2). A call does not tell; the code around it does, mostly.

// maxRemoved is the most space for arguments that is looked for.
const maxRemoved = 64

// removal is how many bytes a callee removes. isSure is false where the code allows for
// others.
type removal struct {
	bytes  int64
	isSure bool
}

// applyCall32 makes a state the one after a call: the callee may have removed arguments, and
// a thunk that reads the PC changes one register alone.
func (f *flow) applyCall32(address uint64, e *Effect, st *state) {
	end := int(address) + int(e.Length)
	if register, ok := f.mode.pcThunk(f.code[end:]); ok && e.IsDirect && !f.IsAhead && address <= maxPrologue {
		st.gpr[register] = value{kind: constant}
		return
	}
	sp := st.gpr[SP]
	st.apply(f.mode, e, 0, f.IsAhead)
	r, ok := f.removed[address]
	if !ok && len(f.removed) < maxPushed {
		if f.body != nil && sp.isAddress() && sp.base == SP {
			r = f.removedInBody(end, int64(sp.off), *f.body)
		} else {
			r = f.mode.removed(f.code, end)
		}
		f.removed[address] = r
	}
	if st.gpr[SP] = st.gpr[SP].plus(r.bytes); f.IsAhead && !r.isSure {
		st.gpr[SP] = value{}
	}
}

// maxPrologue is the number of bytes from the beginning of a function within which it reads
// the PC to address its data.
const maxPrologue = 64

// pcThunk reports whether the call before code is of a thunk that returns the PC in a
// register: the sum is the address of the global offset table. Such a thunk
// changes no other register.
func (m *Mode) pcThunk(code []byte) (register uint8, ok bool) {
	const opAddEAX, opAdd = 0x05, 0x81 // with immediates of four bytes
	if len(code) == 0 || code[0] != opAddEAX && code[0] != opAdd {
		return 0, false
	}
	e, ok := m.ReadEffect(code)
	return e.Dst, ok && e.Kind == Add && e.Dst != SP
}

// removed guesses how many bytes the callee of the call that ends at an offset removes, by
// how the code goes on.
func (m *Mode) removed(code []byte, end int) removal {
	left, space := m.spaceBefore(code, end, maxPadding, 0), m.spaceBefore(code, end, maxRemoved, 0)
	isEmpty := space == 0
	if _, isThunk := m.pcThunk(code[min(end, len(code)):]); isThunk {
		return removal{0, true}
	}
	for at, i := end, 0; i < maxStraight && at < len(code); i++ {
		e, ok := m.ReadEffect(code[at:])
		if !ok {
			break
		}
		at += int(e.Length)
		switch moved, isMove := e.stackMove(); {
		case isMove && moved < 0 && i == 0 && isEmpty && -moved <= maxRemoved && m.isSettled(code[at:]):
			return removal{-moved, true} // the caller's space for arguments is fixed
		case isMove && moved > 0 && (moved == left || moved == space) && m.isSettled(code[at:]):
			return removal{0, true}
		case isMove && moved > 0 && (moved == left-int64(m.Word) || moved == space-int64(m.Word)) && m.isSettled(code[at:]):
			return removal{int64(m.Word), true}
		case e.Kind == Pop && e.Dst != None && !m.IsPreserved(e.Dst):
			if space, left = space-int64(e.Size), left-int64(e.Size); left == 0 && m.isSettled(code[at:]) {
				return removal{0, true}
			}
		case isMove, e.setsStack(), e.Kind == Push, e.Kind == Pop, e.Kind == Enter, e.Kind == Align, e.Kind >= Call && e.Kind != Branch:
			return removal{0, isEmpty}
		}
	}
	return removal{0, isEmpty}
}

// removedInBody is removed in a function whose stack pointer is at a level where nothing is
// pushed for a call, and at sp before the call, both as distances from where it began. Code
// goes back to the level; what it lacks there are the callees' removals: of a word each, or
// of all that was pushed. A callee without arguments that were pushed removes nothing, unless
// the caller makes up for it at once.
func (f *flow) removedInBody(end int, sp, level int64) removal {
	m, code := f.mode, f.code
	first := f.pushedFor(end)
	if first == 0 || sp >= level {
		r := m.removed(code, end)
		return removal{r.bytes, true}
	}
	all, calls, isCleaned := first, int64(1), false
	for at, i := end, 0; i < maxAfter && isInside(at, code); i++ {
		e, ok := m.ReadEffect(code[at:])
		if !ok || e.setsStack() || e.Kind == Enter || e.Kind == Align {
			break
		}
		start := at
		at += int(e.Length)
		moved, _ := e.stackMove()
		switch e.Kind {
		case Push:
			moved = -int64(e.Size)
		case Pop:
			moved = int64(e.Size)
		case Call:
			if pushed := f.pushedFor(at); pushed > 0 {
				all, calls = all+pushed, calls+1
			}
		}
		if e.Kind == Branch || e.Kind == Jump || sp+moved > level || isCleaned && m.isSettled(code[start:]) {
			switch missing := level - sp; {
			case missing == 0:
				return removal{0, true}
			case missing == calls*int64(m.Word):
				return removal{int64(m.Word), true}
			case sp+moved > level && missing == all:
				return removal{first, calls == 1}
			}
		}
		isCleaned = moved > 0
		switch {
		case e.Kind == Jump && e.IsDirect:
			at = start + int(e.Target)
		case e.Kind == Jump, e.Kind == Return, e.Kind == Stop, sp+moved > level:
			return removal{} // the function's own frame is taken down
		}
		sp += moved
	}
	return removal{}
}

// maxPushed bounds the calls whose arguments are looked for in one function.
const maxPushed = 4096

// pushedFor is the number of bytes that were pushed for the call that ends at an offset.
func (f *flow) pushedFor(end int) int64 {
	pushed, ok := f.pushed[end]
	if !ok && len(f.pushed) < maxPushed {
		pushed = f.mode.spaceBefore(f.code, end, maxPadding, 0)
		f.pushed[end] = pushed
	}
	return pushed
}

// maxAfter is the number of instructions after a call that are followed to see what its
// callee removed.
const maxAfter = 256

func isInside(offset int, code []byte) bool { return offset >= 0 && offset < len(code) }

// bodyLevel is the deepest distance of the stack pointer from where a function began, before
// the code that leads to its returns; ok is false where no return shows it.
func (m *Mode) bodyLevel(code []byte) (level int64, ok bool) {
	up, isSet := int64(0), false // what the instructions before take from the stack, or whether they set it
	for at := 0; at < len(code); {
		e, known := m.ReadEffect(code[at:])
		at += max(1, int(e.Length))
		moved, isMove := e.stackMove()
		switch {
		case known && isMove && moved > 0:
			up, isSet = moved, false
		case known && e.Kind == Pop:
			up += int64(e.Size)
		case known && e.setsStack():
			isSet = true
		case known && e.Kind < Call && e.Kind != Push && e.Kind != Align && !isMove:
		default:
			if e.Kind == Return && up > 0 && !isSet {
				level, ok = min(level, -up), true
			}
			up, isSet = 0, false
		}
	}
	return level, ok
}

// stackMove is the distance by which an instruction moves the stack pointer, without
// pushing or popping.
func (e *Effect) stackMove() (distance int64, ok bool) {
	switch {
	case e.Kind == Add && e.Dst == SP:
		return e.Imm, true
	case e.Kind == Address && e.Dst == SP && e.Mem.Base == SP:
		return e.Mem.Offset, true
	}
	return 0, false
}

// setsStack reports whether an instruction sets the stack pointer to an address that does
// not depend on where it was.
func (e *Effect) setsStack() bool {
	return e.Kind == Leave || (e.Kind == Move || e.Kind == Load || e.Kind == Address) && e.Dst == SP
}

// isSettled reports whether code neither pushes nor pops before it moves the stack pointer
// down, or branches.
func (m *Mode) isSettled(code []byte) bool {
	for range maxStraight {
		e, ok := m.ReadEffect(code)
		if !ok || e.Kind == Push || e.Kind == Pop || e.setsStack() {
			return false
		}
		if moved, isMove := e.stackMove(); isMove {
			return moved < 0
		}
		if e.Kind >= Call {
			return true
		}
		code = code[e.Length:]
	}
	return false
}

// examineRemoved tries an arrival after a call, and where the code does not confirm what the
// callee was guessed to remove, what else it may have removed.
func (f *flow) examineRemoved(a *arrival, calls int) codeflow.Trial {
	guessed, ok := f.removed[a.Source]
	t := f.try(a, calls)
	if !ok || t.IsConfirmed || guessed.isSure {
		return t
	}
	for _, bytes := range [...]int64{0, int64(f.mode.Word), f.mode.pushedBefore(f.code, int(a.Address))} {
		if bytes == guessed.bytes {
			continue
		}
		other := *a
		other.State.gpr[SP] = a.State.gpr[SP].plus(bytes - guessed.bytes)
		if o := f.try(&other, calls); o.IsConfirmed && !o.IsContradicted {
			f.removed[a.Source], a.State = removal{bytes, true}, other.State
			return o
		}
	}
	return t
}

// try follows the code from an arrival on trial, through a number of calls.
func (f *flow) try(a *arrival, calls int) codeflow.Trial {
	tables := len(f.tables)
	t := f.Try(a, calls, math.MaxInt)
	f.tables = f.tables[:tables]
	return t
}

// dropsArguments reports whether code takes arguments of a call from the stack, all or some,
// or puts others in their place.
func (m *Mode) dropsArguments(code []byte) bool {
	for range maxStraight {
		e, ok := m.ReadEffect(code)
		if !ok {
			return false
		}
		code = code[e.Length:]
		switch moved, isMove := e.stackMove(); {
		case isMove:
			return moved > 0
		case e.setsStack(), e.Kind == Pop && e.Dst != None && !m.IsPreserved(e.Dst):
			return true
		case e.HasMem && e.Mem.Base == SP && e.Mem.Offset == 0 && (e.Kind == Store || e.Kind == Other):
			return true
		case e.Kind == Pop, e.Kind == Push, e.Kind == Enter, e.Kind == Align, e.Kind >= Call && e.Kind != Branch:
			return false
		}
	}
	return false
}
