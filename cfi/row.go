// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"slices"

	"github.com/unwindd/unwindd/locexpr"
)

// RuleKind names a register rule (DWARF 5, 6.4.1; heterogeneous extension,
// A.6.4.1).
type RuleKind uint8

// The register rules. Unspecified is not a rule of the documents: it means that
// the row does not mention the register, so that the default of the object or
// the architecture applies.
const (
	Unspecified   RuleKind = iota
	Undefined              // no recoverable value
	SameValue              // not modified
	Offset                 // saved at CFA+N
	ValOffset              // is CFA+N
	Register               // saved in another register
	Expression             // saved at the result of the expression
	ValExpression          // is the result of the expression
	Architectural          // defined outside the documents, by the augmentation
	// ValOffsetPerLane is CFA+N divided by the lanes of the thread: a stack pointer that
	// counts the bytes of one lane, in a stack that all lanes share. No file has such a rule;
	// an architecture's default may.
	ValOffsetPerLane
)

// Rule is the way to find one register of the caller.
type Rule struct {
	Kind     RuleKind
	Register uint64 // Register: the register that holds it
	Offset   int64  // Offset, ValOffset, ValOffsetPerLane: bytes from the CFA
	Expr     []byte // Expression, ValExpression: operations, in the object's dialect
}

// RegisterRule is a Rule with the column it stands in.
type RegisterRule struct {
	Column uint64 // DWARF register number
	Rule   Rule
}

// CFAKind names a kind of CFA rule.
type CFAKind uint8

// The kinds of CFA rules. A row whose CFA is NoCFA has no information (it is not an outermost
// frame: producers exist that write empty FDEs).
const (
	NoCFA         CFAKind = iota
	CFARegister           // a register plus an offset
	CFAExpression         // the result of an expression
)

// CFARule is the rule of the CFA: register plus offset in an address space,
// or an expression that yields a memory location.
type CFARule struct {
	Kind     CFAKind
	Register uint64               // CFARegister: DWARF register number
	Offset   int64                // CFARegister: bytes
	Space    locexpr.AddressSpace // CFARegister: the space of the CFA
	Expr     []byte               // CFAExpression: operations, in the object's dialect
}

// Row is a row of the call frame table: the rules for PCs in [Start, End).
//
// Rules are the rules of the row, sorted by column; a column that is absent has
// the default rule of the object or the architecture. CallSite holds rules for
// this frame's own registers while a call is in progress (caller saves): they
// are evaluated with this frame's CFA and registers, and in every frame but
// the top one they override what the callee's row recovered.
type Row struct {
	Start, End    uint64 // virtual addresses
	CFA           CFARule
	Rules         []RegisterRule
	CallSite      []RegisterRule
	ReturnAddress uint64 // column of the return address
	SignalFrame   bool   // the frame was interrupted, not called: its caller's PC is exact
	// WindowSave means that DW_CFA_GNU_window_save was executed an odd number of times:
	// SPARC's register window was saved at the CFA; on AArch64, where the number is
	// DW_CFA_AARCH64_negate_ra_state, the return address is signed
	// (DW_CFA_AARCH64_negate_ra_state_with_pc counts as well).
	WindowSave bool
}

// Circle returns the columns whose Register rules lead back to themselves, directly or
// through others, in ascending order: such rules are ill-formed (A.6.4.1). nil: there are
// none.
func (r *Row) Circle() (columns []uint64) {
	if !slices.ContainsFunc(r.Rules, func(r RegisterRule) bool { return r.Rule.Kind == Register }) {
		return nil
	}
	met := make([]int, len(r.Rules)) // by rule: the number of the path that met it first, from 1 on
	for first := range r.Rules {
		end := first + 1
		i, ok := first, true
		for ok && met[i] == 0 && r.Rules[i].Rule.Kind == Register {
			met[i] = end
			i, ok = find(r.Rules, r.Rules[i].Rule.Register)
		}
		if !ok || met[i] != end {
			continue
		}
		for start := i; ; {
			columns = append(columns, r.Rules[i].Column)
			if i, _ = find(r.Rules, r.Rules[i].Rule.Register); i == start {
				break
			}
		}
	}
	slices.Sort(columns)
	return columns
}
