// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FrameRules finds the rows of functions by reading their code.
//
// A function whose bounds are known is followed from its first instruction; its rows cover
// every instruction whose frame is certain. Without bounds, only what lies ahead of the PC
// counts: a return that the code leads to shows where the return address is. The rows of a
// linkage table and of a signal trampoline are known by their code.
//
// A PC that is not exact is an address inside a call that has not returned: the last byte
// of the call, or the byte before a signal trampoline, which is never called.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return codeflow.Answer(ctx, req, frameRules, codeExits)
}

// reader reads functions. Between two pieces lies brk.
var reader = codeflow.Reader{
	Unit: instructionSize, MaxCode: maxCode, Separator: []byte{0x00, 0x00, 0x20, 0xd4},
	HasEntry: func(r *sdk.CodeRange) bool { return !isLinkage(r.Name) && codeflow.IsCalledAtStart(r.Name) },
	Function: func(_ *sdk.CodeRange, code *codeflow.Pieces) ([]cfi.Row, error) { return functionRows(code) },
	Ahead:    aheadRows,
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) > 0 {
		return reader.Rules(r)
	}
	if row, ok := trampolineRow(r, int(r.PC-r.Start)); ok { //nolint:gosec // inside the code
		return sdk.FrameRules{Rows: []cfi.Row{row}, Trampoline: true}
	}
	if isLinkage(r.Name) || !r.Bounded {
		if rows := stubRows(r); rows != nil {
			return sdk.FrameRules{Rows: rows}
		}
	}
	return reader.Rules(r)
}
