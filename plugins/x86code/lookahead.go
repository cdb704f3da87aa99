// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"errors"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxAhead is the distance from a PC, in both directions, within which code is read for a
// return.
const maxAhead = 1 << 13

// maxStraight is the number of instructions behind a call that are read for its
// arguments.
const maxStraight = 64

// aheadRows reads the code ahead of a PC for a return. The place that the return pops has
// the return address now, and the places that the preserved registers are loaded from
// have the caller's. The row covers the instruction at the PC alone: another edge may
// lead to the next one, as at the start of a loop, where more registers have other
// values. reason tells why there is no row.
func (m *Mode) aheadRows(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	offset := int(r.PC - r.Start)
	resume, end := offset, offset+1
	if !r.Exact {
		// PC is inside a call, which may not return. It is treated as the instruction
		// after it: a call leaves the stack pointer as it was.
		if resume = m.ResumeAfter(r.Code, offset); resume < 0 {
			return nil, "the PC is not inside a call"
		}
		if resume >= len(r.Code) {
			return nil, "there is no code after the call to read"
		}
		end = max(resume, end)
	}
	v, err := m.lookAhead(r.Code, resume, !r.Exact)
	if err != nil {
		return nil, err.Error()
	}
	if r.Exact {
		e, ok := m.ReadEffect(r.Code[offset:])
		if !ok {
			return nil, "there is no instruction at the PC"
		}
		if s, known := v.state(m); known && e.Kind == Call {
			v = s.view(m, m.Search, true)
		}
		if end = offset + int(e.Length); v.cfa.Kind == cfi.NoCFA {
			return nil, "what the frame is found by may change in the call"
		}
	}
	row := v.row(m)
	row.Start, row.End = r.PC, r.Start+uint64(end)
	return []cfi.Row{row}, ""
}

// state is the state of a function whose frame is v; ok is false where the frame is found
// by more than registers and the stack.
func (v *view) state(m *Mode) (s state, ok bool) {
	if v.cfa.Kind != cfi.CFARegister {
		return s, false
	}
	s = m.entryState()
	for r := range s.gpr {
		if !m.IsPreserved(uint8(r)) {
			s.gpr[r] = value{}
		}
	}
	s.gpr[SP] = value{}
	for i := range v.rules {
		x := &v.rules[i]
		if x.Column == uint64(m.PC) {
			continue
		}
		r := m.GPROf(uint32(x.Column))
		s.gpr[r] = value{}
		switch x.Rule.Kind {
		case cfi.Undefined:
		case cfi.Offset:
			s.store(m, value{kind: address, base: SP}.plus(x.Rule.Offset+int64(m.Word)), m.Word, entryValue(r), false)
		default:
			return s, false
		}
	}
	s.gpr[m.GPROf(uint32(v.cfa.Register))] = value{kind: address, base: SP}.plus(int64(m.Word) - v.cfa.Offset)
	return s, true
}

// ResumeAfter returns the offset at which the call around an offset returns: it ends
// right after the offset, or at it where PC is the return address itself. It is -1 where
// there is no call.
func (m *Mode) ResumeAfter(code []byte, offset int) int {
	for _, end := range [...]int{offset + 1, offset} {
		if end <= len(code) {
			if c := m.CallBefore(code[:end]); c == sdk.AfterDirectCall || c == sdk.AfterIndirectCall {
				return end
			}
		}
	}
	return -1
}

// lookAhead finds the frame at an offset by following the code to its returns. afterCall
// means that the instruction before is a call in progress. All returns that are reached
// behind equally many calls must agree.
func (m *Mode) lookAhead(code []byte, offset int, afterCall bool) (v view, err error) {
	first := max(0, offset-maxAhead)
	code = code[first:min(len(code), offset+maxAhead)]
	offset -= first
	var start state
	for r := range start.gpr {
		start.gpr[r] = entryValue(uint8(r))
	}
	if afterCall && m.Word == 4 {
		r := m.removed(code, offset)
		if start.gpr[SP] = start.gpr[SP].plus(r.bytes); !r.isSure {
			start.gpr[SP] = value{}
		}
	}
	f := m.newFlow(codeflow.OnePiece(0, code), start, true)
	if v, err = f.nearestReturn(uint64(offset)); err != nil {
		return v, err
	}
	if afterCall && !(v.mayCall(m, start.gpr[SP]) && v.hasDroppedArguments(m, code, offset)) {
		return v, errors.New("the call before does not return: what follows it has another frame")
	}
	return v, nil
}

// nearestReturn finds the frame at the start, which is at entry, by the returns that are
// reached through the fewest calls.
func (f *flow) nearestReturn(entry uint64) (v view, err error) {
	isFound, missing := false, errors.New("the code ahead leads to no return")
	_, err = f.NearestReturns(&arrival{Address: entry, Source: codeflow.None, State: f.start}, func(p *point, call uint64) (isFrame bool, err error) {
		exit := p.State.exit(f.mode)
		switch {
		case exit.cfa.Kind == cfi.NoCFA:
			missing = errors.New("the code ahead leads to a return whose stack pointer is not known")
			return false, nil
		case f.isBehindNoReturn(call, &exit):
			return false, nil
		case !isFound:
			v, isFound = exit, true
		case !codeflow.IsSameCFA(&v.cfa, &exit.cfa) || !v.join(&exit):
			return false, errors.New("the code ahead leads to returns with different frames")
		}
		return true, nil
	})
	if err == nil && !isFound {
		err = missing
	}
	return v, err
}

// isBehindNoReturn reports whether one of the calls that lead to a return cannot have
// returned if the return's frame is right: the stack pointer was too near the CFA. Then
// another function begins after the call.
func (f *flow) isBehindNoReturn(call uint64, exit *view) bool {
	for call != codeflow.None && exit.mayCall(f.mode, f.Point(call).State.gpr[SP]) &&
		exit.hasDroppedArguments(f.mode, f.code, int(call)+int(f.effect(call).Length)) {
		call = f.Previous(call)
	}
	return call != codeflow.None
}

// join makes v valid at another return too, whose CFA is the same. Code that does not
// preserve registers, as that of Java's compilers, changes others on the path to each
// return; such registers are undefined. ok is false where two places are named for one
// register.
func (v *view) join(other *view) (ok bool) {
	var rules []cfi.RegisterRule
	for i, j := 0, 0; i < len(v.rules) || j < len(other.rules); {
		switch {
		case j == len(other.rules) || i < len(v.rules) && v.rules[i].Column < other.rules[j].Column:
			if v.rules[i].Rule.Kind != cfi.Undefined {
				return false
			}
			rules = append(rules, v.rules[i])
			i++
		case i == len(v.rules) || other.rules[j].Column < v.rules[i].Column:
			if other.rules[j].Rule.Kind != cfi.Undefined {
				return false
			}
			rules = append(rules, other.rules[j])
			j++
		case !codeflow.IsSameRule(v.rules[i], other.rules[j]):
			return false
		default:
			rules = append(rules, v.rules[i])
			i, j = i+1, j+1
		}
	}
	v.rules = rules
	return true
}

// mayCall reports whether a function with this frame may call while its stack
// pointer is sp: at least the return address and a word for alignment lie
// between (psABI 3.2.2: the CFA and the stack pointer of a call are on 16
// bytes). It is true where the two cannot be compared.
func (v *view) mayCall(m *Mode, sp value) bool {
	if v.cfa.Kind != cfi.CFARegister || v.cfa.Register != uint64(m.Numbers[SP]) || sp.kind != address || sp.base != SP {
		return true
	}
	return v.cfa.Offset-int64(sp.off) >= m.CallSpace
}

// hasDroppedArguments reports whether the call that returns at an offset may return, to
// judge by its arguments. They do not matter to a frame that is found by the frame
// pointer.
func (v *view) hasDroppedArguments(m *Mode, code []byte, offset int) bool {
	return v.cfa.Kind != cfi.CFARegister || v.cfa.Register != uint64(m.Numbers[SP]) || m.hasDroppedArguments(code, offset)
}

// hasDroppedArguments reports whether the code at an offset, where a call returns, takes
// from the stack the arguments that were pushed for it right before. Where it does not,
// the call does not return.
func (m *Mode) hasDroppedArguments(code []byte, offset int) bool {
	pushed := m.pushedBefore(code, offset)
	if pushed == 0 {
		return true
	}
	if m.Word == 4 {
		return m.dropsArguments(code[min(offset, len(code)):])
	}
	for range maxStraight {
		if offset >= len(code) {
			return false
		}
		e, ok := m.ReadEffect(code[offset:])
		if !ok {
			return false
		}
		offset += int(e.Length)
		switch {
		case e.Kind == Pop && e.Dst != None && !m.IsPreserved(e.Dst):
			if pushed -= int64(e.Size); pushed == 0 {
				return true
			}
		case e.Kind == Add && e.Dst == SP:
			return e.Imm == pushed
		case e.Kind == Address && e.Dst == SP:
			return e.Mem.Base != SP || e.Mem.Offset == pushed
		case e.Kind == Leave, (e.Kind == Move || e.Kind == Load) && e.Dst == SP:
			return true
		case e.Kind == Pop, e.Kind == Push, e.Kind == Enter, e.Kind == Align,
			e.Kind == Jump, e.Kind == Return, e.Kind == Stop:
			return false
		}
	}
	return false
}

// maxBefore is the number of bytes before a call that are read for its arguments.
const maxBefore = 96

// pushedBefore returns how many bytes of arguments were pushed for the call that
// ends at an offset. The instructions before it are found by beginning far
// enough back: decoding falls into step with the code.
func (m *Mode) pushedBefore(code []byte, end int) int64 {
	return m.spaceBefore(code, end, maxPadding, m.preserved)
}

// maxPadding is the largest space that keeps the stack aligned.
const maxPadding = 15

// spaceBefore is pushedBefore with a subtraction of up to most bytes from the stack pointer
// before the pushes. Pushes of the saved registers, a bit each, before others belong to a
// prologue.
func (m *Mode) spaceBefore(code []byte, end int, most int64, saved uint16) int64 {
	for first := max(0, end-maxBefore); first < end; first++ {
		var pushed, last, padding int64
		offset := first
		for offset < end {
			e, ok := m.ReadEffect(code[offset:])
			if !ok {
				break
			}
			last = pushed
			offset += int(e.Length)
			switch {
			case e.Kind == Push && (e.Src == None || saved>>e.Src&1 == 0 || pushed > 0):
				pushed += padding + int64(e.Size)
				padding = 0
			case e.Kind == Pop:
				pushed = max(0, pushed-int64(e.Size)) // Java's compilers move words in memory so
			case e.Kind == Add && e.Dst == SP && e.Imm < 0 && -e.Imm <= most && e.Imm%int64(m.Word) == 0:
				padding = -e.Imm // keeps the stack aligned, if arguments follow
			case e.Kind >= Call && e.Kind != Branch:
				pushed, padding = 0, 0
			}
		}
		if offset == end {
			// Arguments and their padding keep the stack aligned; one
			// push more aligns it, in place of a subtraction.
			return last &^ (m.Alignment - 1)
		}
	}
	return 0
}

// exit describes the frame of the state at the beginning by the state at a
// return: the stack pointer is at the return address, and the preserved
// registers have the caller's values.
func (s *state) exit(m *Mode) view {
	var v view
	sp := s.gpr[SP]
	switch {
	case sp.kind == address && sp.base < firstFresh:
		v.cfa = cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(m.Numbers[sp.base]), Offset: int64(sp.off) + int64(m.Word)}
		if sp.base != SP && sp.base != BP {
			return view{} // a frame kept in another register has not been seen
		}
		if first, end := s.overlapping(sp, m.Word); first < end {
			return view{} // the return address was written
		}
	case sp.kind == contents:
		v.cfa = cfi.CFARule{Kind: cfi.CFAExpression,
			Expr: loaded(m.Numbers[sp.base], int64(sp.off), int64(sp.add)+int64(m.Word))}
	default:
		return view{}
	}
	for i, register := range m.Saved {
		r := m.saved[i]
		if s.gpr[r] == entryValue(r) {
			continue
		}
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch x := s.gpr[r]; {
		case x.kind == address && x.off == 0 && x.base < firstFresh && x.base != SP:
			rule = cfi.Rule{Kind: cfi.Register, Register: uint64(m.Numbers[x.base])}
		case x.kind == contents && slices.ContainsFunc(s.slots, func(y slot) bool { return y.base != x.base && y.v == entryValue(r) }):
			// The register was stored on the path, by another base: the word that is
			// loaded here may be it, and not be in memory yet.
		case x.kind == contents && x.add == 0 && v.cfa.Kind == cfi.CFARegister && sp.base == x.base:
			rule = cfi.Rule{Kind: cfi.Offset, Offset: int64(x.off) - v.cfa.Offset}
		case x.kind == contents && x.add == 0:
			rule = cfi.Rule{Kind: cfi.Expression, Expr: registerPlus(m.Numbers[x.base], int64(x.off))}
		}
		v.rules = append(v.rules, cfi.RegisterRule{Column: uint64(register), Rule: rule})
	}
	v.rules = append(v.rules, cfi.RegisterRule{Column: uint64(m.PC), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -int64(m.Word)}})
	return v
}
