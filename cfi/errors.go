// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
)

// The problems of call frame information. Each is wrapped in an *Error.
var (
	// Looking up.
	ErrNoFDE = errors.New("no FDE covers the address")
	ErrNoRow = errors.New("the address is outside the FDE")
	// ErrAmbiguous: of a relocatable object.
	ErrAmbiguous = errors.New("FDEs of several code sections cover the address")

	// Sections and entries.
	ErrSection         = errors.New("unusable section description")
	ErrTruncated       = errors.New("data ends early")
	ErrLength          = errors.New("bad length")
	ErrLEB128          = errors.New("LEB128 number exceeds 64 bits")
	ErrVersion         = errors.New("unknown CIE version")
	ErrAugmentation    = errors.New("unexpected augmentation")
	ErrAddressSize     = errors.New("bad address size")
	ErrSegmentSize     = errors.New("bad segment selector size")
	ErrCIEPointer      = errors.New("CIE pointer does not lead to a CIE")
	ErrNotFDE          = errors.New("not an FDE")
	ErrPointerEncoding = errors.New("bad pointer encoding")
	ErrPointerBase     = errors.New("pointer is relative to an unknown address")
	ErrIndirect        = errors.New("indirect pointer cannot be followed")
	ErrOverflow        = errors.New("arithmetic overflow")

	// Instructions.
	ErrInstruction        = errors.New("unknown call frame instruction")
	ErrInitialInstruction = errors.New("instruction is not allowed in a CIE")
	ErrCodeAlignment      = errors.New("code alignment factor is 0")
	ErrBackwards          = errors.New("location goes backwards")
	ErrCFARule            = errors.New("CFA rule is not a register and an offset")
	ErrNoState            = errors.New("restore_state without remember_state")
	ErrLimit              = errors.New("limit exceeded")

	// .eh_frame_hdr.
	ErrNoSearchTable  = errors.New("header has no search table")
	ErrHeader         = errors.New("malformed header")
	ErrHeaderMismatch = errors.New("header does not match the section")

	// Rules.
	ErrNoCFA        = errors.New("row has no CFA rule")
	ErrNoRule       = errors.New("row has no rule for the register")
	ErrLanes        = errors.New("the CFA cannot be divided among the lanes of the thread")
	ErrNotMemory    = errors.New("CFA is not a memory byte address")
	ErrAddressSpace = errors.New("unknown address space")
	ErrRegisterSize = errors.New("size does not match the register")
	ErrCircle       = errors.New("register rules lead to themselves")
)

// Error is a problem in a section: its place, its kind, and the expected or found contents.
type Error struct {
	Section string // "" where the problem is in a row, not in a section
	Offset  uint64 // bytes from the start of the section
	Err     error  // an error of this package, or of a callback
	Detail  string // may be empty
}

// illFormed are the errors for which the document calls the DWARF ill-formed
// (A.6.4.1, A.6.4.2): no state of the target makes them right.
var illFormed = []error{ErrCFARule, ErrNotMemory, ErrAddressSpace, ErrRegisterSize, ErrCircle}

// IsIllFormed reports whether the document calls the DWARF ill-formed for this error. Other
// errors are about malformed data, or about rules that cannot be evaluated in the current
// frame.
func (e *Error) IsIllFormed() bool { return slices.Contains(illFormed, e.Err) }

// CircleError is the error of a row whose rules of columns lead to themselves.
func CircleError(columns []uint64) *Error {
	return &Error{Err: ErrCircle, Detail: fmt.Sprintf("columns %d", columns)}
}

// Error returns "section+offset: problem: detail".
func (e *Error) Error() string {
	s := e.Err.Error()
	if e.IsIllFormed() {
		s = "ill-formed call frame information: " + s
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Section == "" {
		return s
	}
	return fmt.Sprintf("%s+%#x: %s", e.Section, e.Offset, s)
}

// Unwrap returns e.Err. An expression that meets an ill-formed one is ill-formed too.
func (e *Error) Unwrap() error {
	if e.IsIllFormed() {
		return locexpr.IllFormedError(e.Err)
	}
	return e.Err
}
