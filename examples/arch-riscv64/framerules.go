// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// FrameRules finds rows by reading code: that of signal trampolines, and of functions
// whose bounds are known.
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
	switch {
	case strings.HasSuffix(r.Name, ".cold"):
		return sdk.FrameRules{Reason: "a part of a function, which is entered by a jump"}
	case !r.Bounded:
		return sdk.FrameRules{Reason: "where the function begins is not known"}
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
