// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"bytes"
	"context"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// FrameRules finds the rows of functions by reading their code.
//
// A function whose bounds are known is followed from its first instruction; its
// rows cover every instruction whose frame is certain. Without bounds, only
// what lies ahead of the PC counts: a return that the code leads to shows where
// the return address is. The rows of a linkage table and of a signal trampoline
// are known by their code.
//
// A PC that is not exact is an address inside a call that has not returned: the last byte
// of the call, or the byte before a signal trampoline, which is never called.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return codeflow.Answer(ctx, req, frameRules, codeExits)
}

// reader reads functions. Between two pieces it puts int3, longer than an instruction.
var reader = codeflow.Reader{
	Unit: 1, MaxCode: maxCode, Separator: bytes.Repeat([]byte{0xCC}, 16),
	HasEntry: hasEntry, Ahead: aheadRows,
	Function: func(r *sdk.CodeRange, code *codeflow.Pieces) ([]cfi.Row, error) {
		kind, _ := functionKinds.Kind(r.Name)
		return functionRows(code, orderOf(kind))
	},
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) > 0 {
		return reader.Rules(r)
	}
	offset := int(r.PC - r.Start)
	if rows := trampolineRows(r, offset); rows != nil {
		return sdk.FrameRules{Rows: rows, Trampoline: true}
	}
	for _, known := range []func(*sdk.CodeRange, int) (cfi.Row, bool){deepestRow, interpreterRow} {
		if row, ok := known(r, offset); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}}
		}
	}
	if isUncalled(r, offset) {
		return sdk.FrameRules{Reason: "the code is not entered by calls: it goes on through a stack of its own", Uncalled: true}
	}
	kind, _ := functionKinds.Kind(r.Name)
	if kind == sdk.OutermostFunction && r.Bounded {
		return sdk.FrameRules{Rows: []cfi.Row{outermostRow(r.Start, r.Start+uint64(len(r.Code)))}}
	}
	if kind == sdk.StackSwitchFunction && r.Bounded && len(r.Code) <= maxCode {
		if row, ok := switchRow(r, offset); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}}
		}
	}
	if isLinkage(r.Name) || !r.Bounded {
		if rows := pltRows(r, offset); rows != nil {
			return sdk.FrameRules{Rows: rows}
		}
	}
	rules := reader.Rules(r)
	rules.Rows = forNewThreads(rules.Rows, r.Start, r.Code)
	return rules
}

// hasEntry reports whether a function begins with a return address on the stack. With its parts it is
// read only where nothing else is known of it.
func hasEntry(r *sdk.CodeRange) bool {
	kind, _ := functionKinds.Kind(r.Name)
	return codeflow.IsCalledAtStart(r.Name) && (kind == sdk.OrdinaryFunction || len(r.Parts) == 0) && (!isLinkage(r.Name) || len(r.Parts) > 0)
}

func isLinkage(name string) bool { return strings.Contains(name, "plt") }

// orderOf is the order of registers in which frames of a kind of function are searched.
func orderOf(kind sdk.FunctionKind) *[gprCount]uint8 {
	if kind == sdk.StackStartFunction || kind == sdk.StackSwitchFunction {
		return &stackOrder
	}
	return &searchOrder
}

// outermostRow is the row of a function that nothing called: the return address is
// undefined. The CFA is where it would be if the function had been called.
func outermostRow(start, end uint64) cfi.Row {
	row := cfi.Row{Start: start, End: end, ReturnAddress: uint64(rip),
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rsp), Offset: 8}}
	for _, r := range calleeSaved {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
	}
	row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Undefined}})
	return row
}
