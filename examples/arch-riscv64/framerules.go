// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FrameRules finds rows by reading code: of signal trampolines, and of functions whose
// bounds are known; of other code by the instructions ahead of the PC. It does not find
// where code is left.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return codeflow.Answer(ctx, req, frameRules, func(*sdk.CodeRange) *sdk.CodeExits { return nil })
}

// reader reads functions. It puts ebreak between two pieces.
var reader = codeflow.Reader{
	Unit: 2, MaxCode: maxCode, Separator: []byte{0x73, 0x00, 0x10, 0x00}, Ahead: aheadRows,
	HasEntry: func(r *sdk.CodeRange) bool { return codeflow.IsCalledAtStart(r.Name) },
	Function: func(r *sdk.CodeRange, code *codeflow.Pieces) ([]cfi.Row, error) { return functionRows(code, r.Exact) },
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) == 0 {
		if row, ok := trampolineRow(r); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}, Trampoline: true}
		}
	}
	return reader.Rules(r)
}

// aheadRows returns the row of code with an unknown beginning. The PC of a caller is in
// the call, which has returned before the code ahead is executed.
func aheadRows(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	if r.Bounded {
		return nil, "the code ahead is read only where the function's bounds are not known"
	}
	offset := int(r.PC - r.Start) //nolint:gosec // inside the code
	if !r.Exact {
		offset++
	}
	row, err := aheadRow(r.Code, offset)
	if err != nil {
		return nil, err.Error()
	}
	if _, isSaved := row.Rule(uint64(ra)); !r.Exact && !isSaved {
		return nil, errNoReturn.Error() // the call has overwritten ra
	}
	row.Start, row.End = r.PC, r.PC+1
	return []cfi.Row{row}, ""
}
