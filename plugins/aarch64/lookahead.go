// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"errors"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// maxAhead is the number of instructions from a PC, in both directions, within which code
// is read for a return.
const maxAhead = 1 << 11

// aheadRows reads the code ahead of a PC for a return. The places that the return
// address, the stack pointer and the preserved registers come from there have the
// caller's now. The row covers the instruction at the PC alone: another edge may lead to
// the next one, with other registers saved. reason tells why there is no row.
func aheadRows(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	skipped := -r.Start % instructionSize
	if r.PC-r.Start < skipped || r.Exact && r.PC%instructionSize != 0 {
		return nil, "the PC is not on an address of instructions, which are at multiples of 4"
	}
	start, code := r.Start+skipped, r.Code[skipped:]
	n := (r.PC - start) / instructionSize
	end := n + 1
	if !r.Exact {
		// PC is inside a call, which may not return. It is treated as the instruction
		// after it: a call leaves the stack pointer as it was.
		var ok bool
		if end, ok = resumeAfter(code, n); !ok {
			return nil, "the PC is not inside a call"
		}
		n = end
	}
	if !isInstruction(code, n) {
		return nil, "there is no code ahead to read"
	}
	v, err := lookAhead(code, n, !r.Exact)
	if err != nil {
		return nil, err.Error()
	}
	var e effect
	readEffect(word(code, n), &e)
	s := v.state()
	row, ok := s.row(!r.Exact || e.kind == effectCall)
	if !ok {
		return nil, "what the frame is found by may change in the call"
	}
	row.Start, row.End = r.PC, max(start+end*instructionSize, r.PC+1)
	return []cfi.Row{row}, ""
}

// isInstruction reports whether the code has a whole instruction of a number.
func isInstruction(code []byte, n uint64) bool { return n < uint64(len(code)/instructionSize) }

// resumeAfter returns where a call returns: the call at an instruction, or right before
// it.
func resumeAfter(code []byte, n uint64) (resume uint64, ok bool) {
	for _, end := range [...]uint64{n + 1, n} {
		if end == 0 || !isInstruction(code, end-1) {
			continue
		}
		var e effect
		if readEffect(word(code, end-1), &e); e.kind == effectCall {
			return end, true
		}
	}
	return 0, false
}

// view is the frame as the state at a return shows it, in registers and memory as they
// are where the flow began.
type view struct {
	cfaRegister uint8 // 31 or 29
	cfaOffset   int64
	link        value     // x30: an address in the register, or contents below the CFA
	general     [11]value // x19 to x29
	vectors     [8]value
}

// lookAhead finds the frame before an instruction by following the code to its returns.
// afterCall means that the instruction before is a call in progress. All returns that are
// reached behind equally many calls must agree. A return of another function, behind a
// call that does not return, does not count: no word of this frame is its return address.
func lookAhead(code []byte, n uint64, afterCall bool) (v view, err error) {
	first := n - min(n, maxAhead)
	end := min(uint64(len(code)/instructionSize), n+maxAhead)
	f := newFlow(codeflow.OnePiece(0, code[first*instructionSize:end*instructionSize]), true)
	start := entryState()
	if afterCall {
		start.apply(&effect{kind: effectCall}, true)
	}
	v, isSure, err := f.nearestReturn(&arrival{Address: n - first, Source: codeflow.None, State: start})
	if err == nil && (afterCall || !isSure) {
		v.forgetWritten(f, n-first, !afterCall)
	}
	return v, err
}

// forgetWritten forgets registers that the return does not restore although the function
// writes them. The return lies behind a call, which may not return: the code after it may
// be another part of the function, which is entered where they are not saved. isExact
// means that a register that is saved right from the instruction on had its value there.
func (v *view) forgetWritten(f *flow, n uint64, isExact bool) {
	saved := entryState()
	for i := n; isExact && f.IsInside(i) && f.effect(i).kind < effectCall; i++ {
		saved.apply(f.effect(i), true)
	}
	first, end := n, n
	for first > 0 && !isPrologue(word(f.code, first)) {
		first--
	}
	for end++; f.IsInside(end) && !isPrologue(word(f.code, end)); end++ {
	}
	general, vectors := f.written(first, end)
	for i := range v.general {
		own := entryValue(uint8(19 + i)) //nolint:gosec // below 30
		if v.general[i] == own && general>>(19+i)&1 != 0 && !saved.isStoredElsewhere(own, gprNone) {
			v.general[i] = value{}
		}
	}
	for i, own := range &entryVectors {
		if v.vectors[i] == own && vectors>>(firstVector+i)&1 != 0 && !saved.isStoredElsewhere(own, gprNone) {
			v.vectors[i] = value{}
		}
	}
}

// isPrologue reports whether an instruction signs or saves the link register, which functions
// do once.
func isPrologue(w uint32) bool {
	switch {
	case w&0xffffffbf == 0xd503233f, // PACIASP, PACIBSP
		w&0xfe407fff == 0xa8007bfd, // STP X29, X30, [SP]
		w&0xffe00fff == 0xf8000ffe: // STR X30, [SP, #n]!
		return true
	}
	return false
}

// nearestReturn finds the frame at an arrival by the returns that are reached through the
// fewest calls; isSure means that there are no calls.
func (f *flow) nearestReturn(start *arrival) (v view, isSure bool, err error) {
	isFound, missing := false, errors.New("the code ahead leads to no return")
	isSure, err = f.NearestReturns(start, func(p *point, _ uint64) (isFrame bool, err error) {
		e := f.effect(p.Address)
		if e.dst != gprX30 {
			return false, nil
		}
		exit, ok := p.State.exit(e.signed)
		switch {
		case !ok:
			missing = errors.New("the code ahead leads to a return whose frame is not known")
			return false, nil
		case !isFound:
			v, isFound = exit, true
		case !v.join(&exit):
			return false, errors.New("the code ahead leads to returns with different frames")
		}
		return true, nil
	})
	if err == nil && !isFound {
		err = missing
	}
	return v, isSure, err
}

// exit describes the frame by the state at a return: the stack pointer is the CFA, and
// the preserved registers have the caller's values. isSigned means that the return
// authenticates its address. ok is false where the return address is not a word of the
// frame.
func (s *state) exit(isSigned bool) (v view, ok bool) {
	top := s.gpr[gprSP]
	if top.kind != address || top.reg != gprSP && top.reg != gprX29 || top.reg == gprSP && (top.n < 0 || top.n%16 != 0) {
		return v, false
	}
	v = view{cfaRegister: top.reg, cfaOffset: int64(top.n), link: s.gpr[gprX30]}
	if isSigned {
		v.link = resigned(v.link, false, true)
	}
	switch v.link.kind {
	case address:
		ok = v.link == entryValue(gprX30)
	case authEntry:
		ok = true
	case contents, authContents:
		ok = v.isInFrame(v.link) && !s.isStoredElsewhere(entryValue(gprX30), v.link.reg) && !s.isStoredElsewhere(value{kind: signedEntry}, v.link.reg)
	}
	for i := range v.general {
		own := entryValue(uint8(19 + i)) //nolint:gosec // below 30
		v.general[i] = v.inFrame(s, s.gpr[19+i], own)
	}
	for i, own := range &entryVectors {
		v.vectors[i] = v.inFrame(s, s.vectors[i], own)
	}
	return v, ok
}

// isStoredElsewhere reports whether a value was stored on the path at another register
// than base. A word that is loaded at base may be it, and not be in memory yet.
func (s *state) isStoredElsewhere(own value, base uint8) bool {
	return slices.ContainsFunc(s.slots, func(x slot) bool { return x.v == own && x.base != base })
}

// isInFrame reports whether a value is a word of memory that the CFA's register finds, below
// the CFA and not below the stack pointer.
func (v *view) isInFrame(x value) bool {
	return (x.kind == contents || x.kind == authContents) && x.reg == v.cfaRegister && int64(x.n) <= v.cfaOffset-8 &&
		(x.reg != gprSP || x.n >= 0)
}

// inFrame is a register's value if it is its initial one or a word of the frame, else
// unknown.
func (v *view) inFrame(s *state, x, own value) value {
	if x == own || x.kind == contents && v.isInFrame(x) && !s.isStoredElsewhere(own, x.reg) {
		return x
	}
	return value{}
}

// join makes v valid at another return too, whose CFA and return address are the same.
// Registers that differ there are unknown. ok is false where two places are named for
// one.
func (v *view) join(o *view) (ok bool) {
	if v.cfaRegister != o.cfaRegister || v.cfaOffset != o.cfaOffset || v.link != o.link {
		return false
	}
	return joinValues(v.general[:], o.general[:]) && joinValues(v.vectors[:], o.vectors[:])
}

func joinValues(a, b []value) (ok bool) {
	for i := range a {
		switch {
		case a[i] == b[i]:
		case a[i].kind == contents && b[i].kind == contents:
			return false
		default:
			a[i] = value{}
		}
	}
	return true
}

// state is the state of a function whose frame is v: sp was the CFA at its start.
func (v *view) state() state {
	s := entryState()
	for r := range 19 {
		s.gpr[r] = value{}
	}
	s.gpr[gprSP] = value{}
	for i, x := range v.general {
		s.gpr[19+i] = v.restate(&s, x, entryValue(uint8(19+i))) //nolint:gosec // below 30
	}
	for i, x := range v.vectors {
		s.vectors[i] = v.restate(&s, x, entryVectors[i])
	}
	link := entryValue(gprX30)
	if v.link.kind == authContents || v.link.kind == authEntry {
		link = value{kind: signedEntry}
	}
	s.gpr[gprX30] = link
	if v.link.kind == contents || v.link.kind == authContents {
		s.gpr[gprX30] = v.restate(&s, v.link, link)
	}
	s.gpr[v.cfaRegister] = entryValue(gprSP).plus(-v.cfaOffset)
	slices.SortFunc(s.slots, func(a, b slot) int { return int(a.offset) - int(b.offset) })
	return s
}

// restate stores own in x, a word of the frame, and returns the register's value.
func (v *view) restate(s *state, x, own value) value {
	switch x.kind {
	case unknown:
		return value{}
	case contents, authContents:
		s.slots = append(s.slots, slot{offset: int32(int64(x.n) - v.cfaOffset), base: gprSP, v: own}) //nolint:gosec // inside the frame
		return value{}
	}
	return own
}
