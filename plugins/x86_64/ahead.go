package x86_64

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// maxAhead is how much code ahead of a PC is read for a return.
const maxAhead = 1 << 14

// maxPrefix is how many instructions from the PC on get rows of their own.
const maxPrefix = 16

// aheadRows reads the code ahead of an offset for a return. What the return
// pops is where the return address is now, and what the preserved registers
// hold there is where the caller's are now. The rows cover the instructions
// from the offset on, up to the first that may branch or call. Reason says why
// there are none.
func aheadRows(r *sdk.CodeRange, at int) (rows []cfi.Row, reason string) {
	var list rowList
	if !r.Exact {
		// PC is inside a call, which may not return. It is judged as the
		// instruction after it: a call leaves the stack pointer as it was.
		resume := resumeAfter(r.Code, at)
		if resume < 0 {
			return nil, "the PC is not inside a call"
		}
		if resume >= len(r.Code) {
			return nil, "there is no code after the call to read"
		}
		v, reason := lookAhead(r.Code, resume, true)
		if reason != "" {
			return nil, reason
		}
		list.add(r.Start+uint64(at), r.Start+uint64(resume), v.cfa, v.rules)
		return list.rows, ""
	}
	for n := 0; n < maxPrefix && at < len(r.Code); n++ {
		v, why := lookAhead(r.Code, at, false)
		if why != "" {
			if n == 0 {
				return nil, why
			}
			break
		}
		e, _ := readEffect(r.Code[at:])
		next := at + int(e.length)
		if e.kind == effectCall && slices.ContainsFunc(v.rules, func(r cfi.RegisterRule) bool { return r.Rule.Kind == cfi.Register }) {
			// While the call is in progress, the register is its callee's.
			if n == 0 {
				return nil, "a register that the call may change holds a register of the caller"
			}
			break
		}
		list.add(r.Start+uint64(at), r.Start+uint64(next), v.cfa, v.rules)
		if e.kind >= effectCall {
			break
		}
		at = next
	}
	return list.rows, ""
}

// resumeAfter returns the offset at which the call around an offset returns: it
// ends right after the offset, or at it where PC is the return address itself.
// -1 says that there is no call.
func resumeAfter(code []byte, at int) int {
	for _, end := range [...]int{at + 1, at} {
		if end <= len(code) {
			if c := callBefore(code[:end]); c == sdk.AfterDirectCall || c == sdk.AfterIndirectCall {
				return end
			}
		}
	}
	return -1
}

// lookAhead finds the frame at an offset by following the code to its returns.
// afterCall says that the instruction before is a call in progress.
func lookAhead(code []byte, at int, afterCall bool) (v view, reason string) {
	code = code[at:min(len(code), at+maxAhead)]
	var start state
	for r := range start.gpr {
		start.gpr[r] = entryValue(uint8(r))
	}
	f := newFlow(code, true)
	for range maxRetries {
		if err := f.run(0, start); err != nil {
			return view{}, err.Error()
		}
		var exits []view
		for at, s := range f.states {
			if s == nil {
				continue
			}
			if e := f.effect(at); e != nil && e.kind == effectReturn {
				exit := s.exit()
				if exit.cfa.Kind == cfi.NoCFA {
					return view{}, "the code ahead leads to a return whose stack pointer is not known"
				}
				exits = append(exits, exit)
			}
		}
		if len(exits) == 0 {
			return view{}, "the code ahead leads to no return"
		}
		v = exits[0]
		for _, o := range exits[1:] {
			if !sameCFA(v.cfa, o.cfa) || !slices.EqualFunc(v.rules, o.rules, sameRegisterRule) {
				return view{}, "the code ahead leads to returns with different frames"
			}
		}
		if afterCall && !v.mayCall(start.gpr[gprSP]) {
			return view{}, "the call before does not return: what follows it has another frame"
		}
		// A call on the way whose frame would be impossible does not return
		// either.
		again := false
		for at, s := range f.states {
			if s == nil || f.noReturn[at] {
				continue
			}
			if e := f.effect(at); e != nil && e.kind == effectCall && !v.mayCall(s.gpr[gprSP]) {
				f.noReturn[at], again = true, true
			}
		}
		if !again {
			return v, ""
		}
	}
	return view{}, "the code ahead has too many calls that do not return"
}

// maxRetries bounds how often code is read again because a call turned out not
// to return.
const maxRetries = 8

// mayCall says whether a function with this frame may call while its stack
// pointer is sp: at least the return address and a word for alignment lie
// between (psABI 3.2.2: the CFA and the stack pointer of a call are on 16
// bytes). It is true where the two cannot be compared.
func (v *view) mayCall(sp value) bool {
	if v.cfa.Kind != cfi.CFARegister || v.cfa.Register != uint64(rsp) || sp.kind != address || sp.base != gprSP {
		return true
	}
	return v.cfa.Offset-int64(sp.off) >= 16
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
		if from, to := s.overlapping(sp, 8); from < to {
			return view{} // the return address was written
		}
	case sp.kind == contents:
		v.cfa = cfi.CFARule{Kind: cfi.CFAExpression,
			Expr: loaded(registerPlus(dwarfNumber[sp.base], int64(sp.off)), int64(sp.add)+8)}
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
