// SPDX-License-Identifier: Apache-2.0

package x86code

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
func (m *Mode) FrameRules(ctx context.Context, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return codeflow.Answer(ctx, req, m.Rules, m.codeExits)
}

// newReader returns the reader of functions. Between two pieces it puts int3, longer than
// an instruction.
func (m *Mode) newReader() codeflow.Reader {
	return codeflow.Reader{
		Unit: 1, MaxCode: MaxCode, Separator: bytes.Repeat([]byte{0xCC}, 16),
		HasEntry: m.hasEntry, Ahead: m.aheadRows,
		Function: func(r *sdk.CodeRange, code *codeflow.Pieces) ([]cfi.Row, error) {
			kind, _ := m.Kinds.Kind(r.Name)
			return m.FunctionRows(code, m.orderOf(kind))
		},
	}
}

// Rules finds the rows of one function.
func (m *Mode) Rules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) > 0 {
		return m.reader.Rules(r)
	}
	offset := int(r.PC - r.Start)
	if rows := m.trampolineRows(r, offset); rows != nil {
		return sdk.FrameRules{Rows: rows, Trampoline: true}
	}
	if row, ok := m.deepestRow(r, offset); ok {
		return sdk.FrameRules{Rows: []cfi.Row{row}}
	}
	if m.Special != nil {
		if rules, ok := m.Special(r, offset); ok {
			return rules
		}
	}
	if kind, _ := m.Kinds.Kind(r.Name); kind == sdk.OutermostFunction && r.Bounded {
		return sdk.FrameRules{Rows: []cfi.Row{m.OutermostRow(r.Start, r.Start+uint64(len(r.Code)))}}
	}
	if isLinkage(r.Name) || !r.Bounded {
		if rows := m.pltRows(r, offset); rows != nil {
			return sdk.FrameRules{Rows: rows}
		}
	}
	rules := m.reader.Rules(r)
	rules.Rows = m.forNewThreads(rules.Rows, r.Start, r.Code)
	return rules
}

// hasEntry reports whether a function begins with a return address on the stack. With its parts it is
// read only where nothing else is known of it.
func (m *Mode) hasEntry(r *sdk.CodeRange) bool {
	kind, _ := m.Kinds.Kind(r.Name)
	return codeflow.IsCalledAtStart(r.Name) && (kind == sdk.OrdinaryFunction || len(r.Parts) == 0) && (!isLinkage(r.Name) || len(r.Parts) > 0)
}

func isLinkage(name string) bool { return strings.Contains(name, "plt") }

// orderOf is the order of registers in which frames of a kind of function are searched.
func (m *Mode) orderOf(kind sdk.FunctionKind) []uint8 {
	if kind == sdk.StackStartFunction || kind == sdk.StackSwitchFunction {
		return m.StackOrder
	}
	return m.Search
}

// OutermostRow is the row of a function that nothing called: the return address is
// undefined. The CFA is where it would be if the function had been called.
func (m *Mode) OutermostRow(start, end uint64) cfi.Row {
	row := cfi.Row{Start: start, End: end, ReturnAddress: uint64(m.PC),
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(m.Numbers[SP]), Offset: int64(m.Word)}}
	for _, r := range m.Saved {
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r), Rule: cfi.Rule{Kind: cfi.Undefined}})
	}
	row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(m.PC), Rule: cfi.Rule{Kind: cfi.Undefined}})
	return row
}
