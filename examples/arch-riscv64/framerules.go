// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// FrameRules finds rows by reading code: that of signal trampolines, and of functions
// whose bounds are known; of others by what lies ahead of the PC.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{Functions: make([]sdk.FrameRules, len(req.Functions))}
	for i := range req.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r := &req.Functions[i]; !r.Exits { // where code goes on to is not known
			answer.Functions[i] = frameRules(r)
		}
	}
	return answer, nil
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	if r.PC < r.Start || r.PC-r.Start >= uint64(len(r.Code)) || r.Start+uint64(len(r.Code)) < r.Start {
		return sdk.FrameRules{Reason: "the PC is not in the code"}
	}
	if row, ok := trampolineRow(r); ok {
		return sdk.FrameRules{Rows: []cfi.Row{row}, Trampoline: true}
	}
	_, isPart := sdk.PartOf(r.Name)
	switch {
	case isPart:
		return sdk.FrameRules{Reason: "a part of a function, which is entered by a jump"}
	case !r.Bounded:
		return aheadRules(r)
	case len(r.Code) > maxCode:
		return sdk.FrameRules{Reason: fmt.Sprintf("a function of %d bytes, of which %d at most are read", len(r.Code), maxCode)}
	}
	rows, err := functionRows(r.Start, r.Code, r.Exact)
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	for i := range rows {
		if r.PC >= rows[i].Start && r.PC < rows[i].End {
			return sdk.FrameRules{Rows: rows}
		}
	}
	return sdk.FrameRules{Reason: "reading the function from its start does not show its frame here"}
}

// aheadRules is the row of code whose beginning is not known. The PC of a caller is in the
// call, which has returned before what lies ahead is executed.
func aheadRules(r *sdk.CodeRange) sdk.FrameRules {
	at := int(r.PC - r.Start) //nolint:gosec // inside the code
	if !r.Exact {
		at++
	}
	row, err := aheadRow(r.Code, at)
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	if _, isSaved := row.Rule(uint64(ra)); !r.Exact && !isSaved {
		return sdk.FrameRules{Reason: errNoReturn.Error()} // the call has overwritten ra
	}
	row.Start, row.End = r.PC, r.PC+1
	return sdk.FrameRules{Rows: []cfi.Row{row}}
}
