// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// An arm64Lister makes the rows of a function of arm64: one for each instruction of the prologue and
// of the epilogues, whose codes say how much is undone.
type arm64Lister struct {
	fn    Function
	info  *ARM64Info
	frame arm64Frame
	row   *Row
	yield func(*Row) bool
	next  uint64 // where the next row begins
}

// arm64Rows lists the rows of a function, each in row.
func (f *File) arm64Rows(fn Function, row *Row, yield func(*Row) bool) error {
	info, err := f.ARM64Info(fn)
	if err != nil {
		return err
	}
	l := arm64Lister{fn: fn, info: info, row: row, yield: yield, next: fn.Start}
	_ = l.prologue() && l.rest()
	return nil
}

// emit yields the row up to an address, for codes of which some instructions are skipped. It is false
// where no more are wanted.
func (l *arm64Lister) emit(part Part, end uint64, codes []ARM64Code, skip int) bool {
	if end = min(end, l.fn.End); end <= l.next {
		return l.next < l.fn.End
	}
	l.frame.undo(codes, skip)
	l.frame.row(&l.row.Row)
	l.row.Part, l.row.Start, l.row.End = part, l.next, end
	l.next = end
	return l.yield(l.row) && end < l.fn.End
}

func (l *arm64Lister) prologue() bool {
	n, _ := arm64Instructions(l.info.Prolog)
	for i := range n {
		if !l.emit(Prologue, l.next+arm64Instruction, l.info.Prolog, n-i) {
			return false
		}
	}
	return true
}

// rest lists the rows behind the prologue. Of epilogues that overlap the first one counts.
func (l *arm64Lister) rest() bool {
	for i := range l.info.Epilogs {
		e := &l.info.Epilogs[i]
		if e.Start > l.next && !l.emit(Body, e.Start, l.info.Prolog, 0) {
			return false
		}
		for j := range arm64EpilogSize(e.Codes) / arm64Instruction {
			if !l.emit(Epilogue, e.Start+(j+1)*arm64Instruction, e.Codes, int(j)) { //nolint:gosec // a byte's codes
				return false
			}
		}
	}
	return l.emit(Body, l.fn.End, l.info.Prolog, 0)
}

// arm64DefaultRules returns the rules of registers that a row does not name, by the convention of
// Windows for arm64 ("Overview of ARM64 ABI conventions", Integer registers, Floating-point/SIMD
// registers): x19 to x28, x29, and the low halves of v8 to v15 are preserved; x18 has the thread's
// block of data, and lr is the caller's where it is not saved.
func arm64DefaultRules() []cfi.RegisterRule {
	var list []cfi.RegisterRule
	for column := range uint64(arm64V0 + 32) {
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch {
		case column == arm64SP:
			rule = cfi.Rule{Kind: cfi.ValOffset}
		case column >= 18 && column <= arm64LR, column == arm64VG, column >= arm64V0+8 && column < arm64V0+16:
			rule = cfi.Rule{Kind: cfi.SameValue}
		}
		list = append(list, cfi.RegisterRule{Column: column, Rule: rule})
	}
	return list
}

// isARM64Fragment reports whether an entry is a part of another function: packed data say so, and
// codes that begin with an end of their scope.
func (f *File) isARM64Fragment(e runtimeFunction) bool {
	if flag := e.unwind & arm64FlagMask; flag != arm64Record {
		return flag == arm64PackedFragment
	}
	h, err := f.arm64Header(e.unwind)
	if err != nil || h.words == 0 {
		return false
	}
	offset := h.size
	if !h.isSingle {
		offset += 4 * h.epilogs
	}
	first := f.source.upTo(e.unwind+offset, 1)
	return slices.Equal(first, []byte{0xe5})
}
