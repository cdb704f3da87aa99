// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// A frame is the result of undoing unwind codes ("x64 exception handling", Unwind procedure).
// Positions are bytes above an origin: the stack pointer, or once SET_FPREG was undone, the stack
// pointer when the frame register was set.
type frame struct {
	register uint8 // that the origin is known by
	offset   int64 // the register is that far above the origin
	depth    int64 // the bytes that were undone so far
	saved    []savedRegister
	pushed   []uint8 // the registers of PUSH_NONVOL, the last first
	machine  bool    // the processor pushed the frame
	// fixedBy is the frame register, and its offset, that positions were fixed by;
	// isMixed: there were several, so that some positions are unknown.
	fixedBy [2]uint8
	isMixed bool
}

type savedRegister struct {
	column   uint64
	position int64
	isFixed  bool // the position is above the place that the frame register names
}

// undo undoes the codes of one range that were executed before an offset in it. Where
// chained ranges follow, the frame goes on with them.
func (fr *frame) undo(u *UnwindInfo, offset uint32) {
	base, isFixed := fr.depth, false
	if u.FrameRegister != 0 && isFrameSet(u, offset) {
		base, isFixed = 0, true
		fr.fixBy(u)
	}
	for _, c := range u.Codes {
		if uint32(c.Offset) > offset {
			continue
		}
		switch c.Operation {
		case PushNonvol:
			fr.save(DWARFRegister(c), fr.depth, fr.register != rsp)
			fr.pushed = append(fr.pushed, c.Register)
			fr.depth += 8
		case AllocLarge, AllocSmall:
			fr.depth += int64(c.Value)
		case SetFPReg:
			fr.rebase(u)
		case SaveNonvol, SaveNonvolFar, SaveXMM128, SaveXMM128Far:
			fr.save(DWARFRegister(c), base+int64(c.Value), isFixed || fr.register != rsp)
		case PushMachFrame:
			fr.machine = true
			fr.depth += 8 * int64(c.Value)
			return
		}
	}
}

// isFrameSet reports whether the frame register was set before an offset: by this range, or
// in a range that is chained by one before.
func isFrameSet(u *UnwindInfo, offset uint32) bool {
	for _, c := range u.Codes {
		if c.Operation == SetFPReg {
			return uint32(c.Offset) <= offset
		}
	}
	return u.Flags&IsChained != 0
}

// rebase makes the frame register the origin. Codes that were undone before came later in the
// prologue: their places lie below the new origin.
func (fr *frame) rebase(u *UnwindInfo) {
	fr.fixBy(u)
	if fr.register == rsp {
		for i := range fr.saved {
			if s := &fr.saved[i]; !s.isFixed {
				s.position, s.isFixed = s.position-fr.depth, true
			}
		}
	}
	fr.register, fr.offset, fr.depth = u.FrameRegister, int64(u.FrameOffset), 0
}

// fixBy records the frame register of a range.
func (fr *frame) fixBy(u *UnwindInfo) {
	register := [2]uint8{u.FrameRegister, u.FrameOffset}
	fr.isMixed = fr.isMixed || fr.fixedBy != [2]uint8{} && fr.fixedBy != register
	fr.fixedBy = register
}

// save records where a register was saved. Of several places the first one written counts, as it has
// the caller's value.
func (fr *frame) save(column uint64, position int64, isFixed bool) {
	s := savedRegister{column, position, isFixed}
	for i := range fr.saved {
		if fr.saved[i].column == column {
			fr.saved[i] = s
			return
		}
	}
	fr.saved = append(fr.saved, s)
}

// reset makes the frame as at the start of a function.
func (fr *frame) reset() {
	*fr = frame{register: rsp, saved: fr.saved[:0], pushed: fr.pushed[:0]}
}

// machineFrame is the size of the frame that the processor pushes on an interrupt: RIP, CS, RFLAGS, RSP, SS
// (Intel SDM volume 3, 6.14.2).
const machineFrame = 40

// hasBase reports whether the places of all saved registers are relative to the register of the CFA.
// They are not where the information names a frame register and no code sets it.
func (fr *frame) hasBase() bool {
	return !fr.isMixed && (fr.register != rsp || !slices.ContainsFunc(fr.saved, func(s savedRegister) bool { return s.isFixed }))
}

// row fills in the CFA and the rules. The CFA is the stack pointer of the caller, and
// for a machine frame its end, above which the stack of the interrupted code need not be.
func (fr *frame) row(r *cfi.Row) {
	cfa := fr.depth + 8
	if fr.machine {
		cfa = fr.depth + machineFrame
	}
	r.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: dwarfRegisters[fr.register], Offset: cfa - fr.offset}
	r.Rules = append(r.Rules[:0], offsetRule(dwarfReturnAddress, fr.depth-cfa))
	if r.SignalFrame = fr.machine; fr.machine {
		r.Rules = append(r.Rules, offsetRule(dwarfRSP, fr.depth+24-cfa))
	}
	for _, s := range fr.saved {
		r.Rules = append(r.Rules, offsetRule(s.column, s.position-cfa))
	}
	slices.SortFunc(r.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	r.CallSite, r.ReturnAddress, r.WindowSave = r.CallSite[:0], dwarfReturnAddress, false
}

func offsetRule(column uint64, offset int64) cfi.RegisterRule {
	return cfi.RegisterRule{Column: column, Rule: cfi.Rule{Kind: cfi.Offset, Offset: offset}}
}
