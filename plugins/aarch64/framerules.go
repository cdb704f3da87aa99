// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// FrameRules finds the rows of functions whose bounds are known by reading their code
// from the first instruction on. Its rows cover every instruction whose frame is
// certain. A signal trampoline is known by its code.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{Functions: make([]sdk.FrameRules, len(req.Functions))}
	for i := range req.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !req.Functions[i].Exits {
			answer.Functions[i] = frameRules(&req.Functions[i])
		}
	}
	return answer, nil
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	end := r.Start + uint64(len(r.Code))
	switch {
	case r.PC < r.Start || r.PC-r.Start >= uint64(len(r.Code)):
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, does not hold the PC %#x", r.Start, len(r.Code), r.PC)}
	case end < r.Start:
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, goes past the end of the address space", r.Start, len(r.Code))}
	}
	if row, ok := trampolineRow(r, int(r.PC-r.Start)); ok { //nolint:gosec // inside the code
		return sdk.FrameRules{Rows: []cfi.Row{row}, Trampoline: true}
	}
	switch {
	case !r.Bounded:
		return sdk.FrameRules{Reason: "where the function begins is not known"}
	case r.Start%instructionSize != 0:
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x is not on an address of instructions, which are at multiples of 4", r.Start)}
	case !isCalledAtStart(r.Name):
		return sdk.FrameRules{Reason: "the code is not entered by calls of its first instruction"}
	case len(r.Code) > maxCode:
		return sdk.FrameRules{Reason: fmt.Sprintf("a function of %d bytes, of which %d at most are read", len(r.Code), maxCode)}
	}
	rows, err := functionRows(r.Start, r.Code)
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	if !slices.ContainsFunc(rows, func(row cfi.Row) bool { return r.PC >= row.Start && r.PC < row.End }) {
		return sdk.FrameRules{Reason: "reading the function from its start does not show its frame here"}
	}
	return sdk.FrameRules{Rows: rows}
}

// isCalledAtStart says whether a function of that name begins with a return address in
// the link register. Compilers name the unlikely part of a function, which a jump
// enters in mid-frame, after the function; entries of the linkage table enter the
// dynamic linker's resolvers with words of theirs on the stack.
func isCalledAtStart(name string) bool {
	return !strings.HasSuffix(name, ".cold") && !strings.Contains(name, ".cold.") && !strings.Contains(name, "plt") &&
		!strings.HasPrefix(name, "_dl_runtime_resolve") && !strings.HasPrefix(name, "_dl_runtime_profile") &&
		!strings.HasPrefix(name, "_dl_tlsdesc_")
}

// functionRows reads a function, and returns the rows of every instruction whose frame
// is certain.
func functionRows(start uint64, code []byte) ([]cfi.Row, error) {
	f := newFlow(code)
	if err := f.run(); err != nil {
		return nil, err
	}
	var rows []cfi.Row
	for at, s := range f.states {
		if s == nil {
			continue
		}
		e, ok := f.effect(at)
		if !ok {
			continue
		}
		row, ok := s.row(e.kind == effectCall)
		if !ok {
			continue
		}
		row.Start = start + uint64(at)*instructionSize
		row.End = row.Start + instructionSize
		if n := len(rows); n > 0 && rows[n-1].End == row.Start && isSameRow(&rows[n-1], &row) {
			rows[n-1].End = row.End
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func isSameRow(a, b *cfi.Row) bool {
	return a.CFA.Register == b.CFA.Register && a.CFA.Offset == b.CFA.Offset && a.WindowSave == b.WindowSave &&
		slices.EqualFunc(a.Rules, b.Rules, func(x, y cfi.RegisterRule) bool {
			return x.Column == y.Column && x.Rule.Kind == y.Rule.Kind && x.Rule.Register == y.Rule.Register && x.Rule.Offset == y.Rule.Offset
		})
}

// cfaOrder is the order in which registers are asked for the CFA.
var cfaOrder = [...]uint8{gprSP, gprX29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}

// cfa is the rule of the CFA by a register that a call preserves.
func (s *state) cfa() (rule cfi.CFARule, ok bool) {
	for _, r := range cfaOrder {
		if v := s.gpr[r]; v.kind == address {
			return cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(r), Offset: -v.n}, true
		}
	}
	return rule, false
}

// saved is where the stack holds a value.
func (s *state) saved(want value) (rule cfi.Rule, ok bool) {
	for i := len(s.slots) - 1; i >= 0; i-- {
		if s.slots[i].v == want {
			return cfi.Rule{Kind: cfi.Offset, Offset: s.slots[i].at}, true
		}
	}
	return cfi.Rule{Kind: cfi.Undefined}, false
}

// row describes the frame. atCall says that the row also holds while a call is in
// progress, when x30 is no longer the caller's. ok is false where the CFA or the return
// address is not known.
func (s *state) row(atCall bool) (row cfi.Row, ok bool) {
	row.ReturnAddress = uint64(x30)
	if row.CFA, ok = s.cfa(); !ok {
		return row, false
	}
	for r := uint8(19); r <= gprX29; r++ {
		if want := (value{kind: entry, reg: r}); s.gpr[r] != want {
			rule, _ := s.saved(want)
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: rule})
		}
	}
	if ok = s.addReturnAddress(&row, atCall); !ok {
		return row, false
	}
	for i := range s.vectors {
		if want := (value{kind: entryVector, reg: uint8(firstVector + i)}); s.vectors[i] != want { //nolint:gosec // below 16
			rule, _ := s.saved(want)
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(v8) + uint64(i), Rule: rule})
		}
	}
	return row, true
}

// addReturnAddress adds where the return address is: in the link register, on the
// stack, or in another register that a call does not change.
func (s *state) addReturnAddress(row *cfi.Row, atCall bool) (ok bool) {
	plain, signed := value{kind: entry, reg: gprX30}, value{kind: signedEntry}
	if held := s.gpr[gprX30]; !atCall && (held == plain || held == signed) {
		row.WindowSave = held == signed
		return true
	}
	for _, want := range [...]value{plain, signed} {
		rule, ok := s.saved(want)
		for r := uint8(0); r < gprX29 && !ok; r++ {
			if s.gpr[r] == want && (!atCall || r >= 19) {
				rule, ok = cfi.Rule{Kind: cfi.Register, Register: uint64(r)}, true
			}
		}
		if ok {
			row.WindowSave = want == signed
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(x30), Rule: rule})
			return true
		}
	}
	return false
}

// knows returns what a state knows of its frame, a bit each: the CFA, the return
// address and the caller's preserved registers.
func (s *state) knows() (bits uint32) {
	row, ok := s.row(false)
	if !ok {
		return 0
	}
	bits = ^uint32(0)
	for _, r := range row.Rules {
		if r.Rule.Kind == cfi.Undefined {
			bits &^= 1 << (r.Column % 31) // x19 to x29 and v8 to v15 share none
		}
	}
	return bits
}
