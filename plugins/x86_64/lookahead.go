// SPDX-License-Identifier: Apache-2.0

package x86_64

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
func aheadRows(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	offset := int(r.PC - r.Start)
	resume, end := offset, offset+1
	if !r.Exact {
		// PC is inside a call, which may not return. It is treated as the instruction
		// after it: a call leaves the stack pointer as it was.
		if resume = resumeAfter(r.Code, offset); resume < 0 {
			return nil, "the PC is not inside a call"
		}
		if resume >= len(r.Code) {
			return nil, "there is no code after the call to read"
		}
		end = max(resume, end)
	}
	v, err := lookAhead(r.Code, resume, !r.Exact)
	if err != nil {
		return nil, err.Error()
	}
	if r.Exact {
		e, ok := readEffect(r.Code[offset:])
		if !ok {
			return nil, "there is no instruction at the PC"
		}
		if s, known := v.state(); known && e.kind == effectCall {
			v = s.view(&searchOrder, true)
		}
		if end = offset + int(e.length); v.cfa.Kind == cfi.NoCFA {
			return nil, "what the frame is found by may change in the call"
		}
	}
	row := v.row()
	row.Start, row.End = r.PC, r.Start+uint64(end)
	return []cfi.Row{row}, ""
}

// state is the state of a function whose frame is v; ok is false where the frame is found
// by more than registers and the stack.
func (v *view) state() (s state, ok bool) {
	if v.cfa.Kind != cfi.CFARegister {
		return s, false
	}
	s = entryState()
	for r := range s.gpr {
		if preserved>>r&1 == 0 {
			s.gpr[r] = value{}
		}
	}
	s.gpr[gprSP] = value{}
	for i := range v.rules {
		x := &v.rules[i]
		if x.Column == uint64(rip) {
			continue
		}
		r := gprOf(uint32(x.Column))
		s.gpr[r] = value{}
		switch x.Rule.Kind {
		case cfi.Undefined:
		case cfi.Offset:
			s.store(value{kind: address, base: gprSP}.plus(x.Rule.Offset+8), 8, entryValue(r), false)
		default:
			return s, false
		}
	}
	s.gpr[gprOf(uint32(v.cfa.Register))] = value{kind: address, base: gprSP}.plus(8 - v.cfa.Offset)
	return s, true
}

// resumeAfter returns the offset at which the call around an offset returns: it ends
// right after the offset, or at it where PC is the return address itself. It is -1 where
// there is no call.
func resumeAfter(code []byte, offset int) int {
	for _, end := range [...]int{offset + 1, offset} {
		if end <= len(code) {
			if c := callBefore(code[:end]); c == sdk.AfterDirectCall || c == sdk.AfterIndirectCall {
				return end
			}
		}
	}
	return -1
}

// lookAhead finds the frame at an offset by following the code to its returns. afterCall
// means that the instruction before is a call in progress. All returns that are reached
// behind equally many calls must agree.
func lookAhead(code []byte, offset int, afterCall bool) (v view, err error) {
	first := max(0, offset-maxAhead)
	code = code[first:min(len(code), offset+maxAhead)]
	offset -= first
	var start state
	for r := range start.gpr {
		start.gpr[r] = entryValue(uint8(r))
	}
	f := newFlow(codeflow.OnePiece(0, code), start, true)
	if v, err = f.nearestReturn(uint64(offset)); err != nil {
		return v, err
	}
	if afterCall && !(v.mayCall(start.gpr[gprSP]) && v.hasDroppedArguments(code, offset)) {
		return v, errors.New("the call before does not return: what follows it has another frame")
	}
	return v, nil
}

// nearestReturn finds the frame at the start, which is at entry, by the returns that are
// reached through the fewest calls.
func (f *flow) nearestReturn(entry uint64) (v view, err error) {
	isFound, missing := false, errors.New("the code ahead leads to no return")
	_, err = f.NearestReturns(&arrival{Address: entry, Source: codeflow.None, State: f.start}, func(p *point, call uint64) (isFrame bool, err error) {
		exit := p.State.exit()
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
	for call != codeflow.None && exit.mayCall(f.Point(call).State.gpr[gprSP]) &&
		exit.hasDroppedArguments(f.code, int(call)+int(f.effect(call).length)) {
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
func (v *view) mayCall(sp value) bool {
	if v.cfa.Kind != cfi.CFARegister || v.cfa.Register != uint64(rsp) || sp.kind != address || sp.base != gprSP {
		return true
	}
	return v.cfa.Offset-int64(sp.off) >= 16
}

// hasDroppedArguments reports whether the call that returns at an offset may return, to
// judge by its arguments. They do not matter to a frame that is found by the frame
// pointer.
func (v *view) hasDroppedArguments(code []byte, offset int) bool {
	return v.cfa.Kind != cfi.CFARegister || v.cfa.Register != uint64(rsp) || hasDroppedArguments(code, offset)
}

// hasDroppedArguments reports whether the code at an offset, where a call returns, takes
// from the stack the arguments that were pushed for it right before. Where it does not,
// the call does not return.
func hasDroppedArguments(code []byte, offset int) bool {
	pushed := pushedBefore(code, offset)
	if pushed == 0 {
		return true
	}
	for range maxStraight {
		if offset >= len(code) {
			return false
		}
		e, ok := readEffect(code[offset:])
		if !ok {
			return false
		}
		offset += int(e.length)
		switch {
		case e.kind == effectPop && e.dst != gprNone && preserved>>e.dst&1 == 0:
			if pushed -= int64(e.size); pushed == 0 {
				return true
			}
		case e.kind == effectAdd && e.dst == gprSP:
			return e.imm == pushed
		case e.kind == effectAddress && e.dst == gprSP:
			return e.mem.base != gprSP || e.mem.offset == pushed
		case e.kind == effectLeave, (e.kind == effectMove || e.kind == effectLoad) && e.dst == gprSP:
			return true
		case e.kind == effectPop, e.kind == effectPush, e.kind == effectEnter, e.kind == effectAlign,
			e.kind == effectJump, e.kind == effectReturn, e.kind == effectStop:
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
func pushedBefore(code []byte, end int) int64 {
	for first := max(0, end-maxBefore); first < end; first++ {
		var pushed, last, padding int64
		offset := first
		for offset < end {
			e, ok := readEffect(code[offset:])
			if !ok {
				break
			}
			last = pushed
			offset += int(e.length)
			switch {
			case e.kind == effectPush && (e.src == gprNone || preserved>>e.src&1 == 0 || pushed > 0):
				pushed += padding + int64(e.size)
				padding = 0
			case e.kind == effectPop:
				pushed = max(0, pushed-int64(e.size)) // Java's compilers move words in memory so
			case e.kind == effectAdd && e.dst == gprSP && e.imm == -8:
				padding = 8 // keeps the stack aligned, if arguments follow
			case e.kind >= effectCall && e.kind != effectBranch:
				pushed, padding = 0, 0
			}
		}
		if offset == end {
			// Arguments and their padding keep the stack aligned on 16 bytes; one
			// push more aligns it, in place of a subtraction.
			return last &^ 15
		}
	}
	return 0
}

// exit describes the frame of the state at the beginning by the state at a
// return: the stack pointer is at the return address, and the preserved
// registers have the caller's values.
func (s *state) exit() view {
	var v view
	sp := s.gpr[gprSP]
	switch {
	case sp.kind == address && sp.base < firstFresh:
		v.cfa = cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(dwarfNumber[sp.base]), Offset: int64(sp.off) + 8}
		if sp.base != gprSP && sp.base != gprBP {
			return view{} // a frame kept in another register has not been seen
		}
		if first, end := s.overlapping(sp, 8); first < end {
			return view{} // the return address was written
		}
	case sp.kind == contents:
		v.cfa = cfi.CFARule{Kind: cfi.CFAExpression,
			Expr: loaded(dwarfNumber[sp.base], int64(sp.off), int64(sp.add)+8)}
	default:
		return view{}
	}
	for _, register := range calleeSaved {
		r := gprOf(register)
		if s.gpr[r] == entryValue(r) {
			continue
		}
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch x := s.gpr[r]; {
		case x.kind == address && x.off == 0 && x.base < firstFresh && x.base != gprSP:
			rule = cfi.Rule{Kind: cfi.Register, Register: uint64(dwarfNumber[x.base])}
		case x.kind == contents && slices.ContainsFunc(s.slots, func(y slot) bool { return y.base != x.base && y.v == entryValue(r) }):
			// The register was stored on the path, by another base: the word that is
			// loaded here may be it, and not be in memory yet.
		case x.kind == contents && x.add == 0 && v.cfa.Kind == cfi.CFARegister && sp.base == x.base:
			rule = cfi.Rule{Kind: cfi.Offset, Offset: int64(x.off) - v.cfa.Offset}
		case x.kind == contents && x.add == 0:
			rule = cfi.Rule{Kind: cfi.Expression, Expr: registerPlus(dwarfNumber[x.base], int64(x.off))}
		}
		v.rules = append(v.rules, cfi.RegisterRule{Column: uint64(register), Rule: rule})
	}
	v.rules = append(v.rules, cfi.RegisterRule{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}})
	return v
}
