// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
// A PC that is not exact is an address inside a call that has not returned:
// the last byte of the call, or what precedes a signal trampoline, which
// nobody calls.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{Functions: make([]sdk.FrameRules, len(req.Functions))}
	for i := range req.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r := &req.Functions[i]; r.Exits {
			answer.Functions[i] = sdk.FrameRules{Exits: codeExits(r)}
		} else {
			answer.Functions[i] = frameRules(r)
		}
	}
	return answer, nil
}

func frameRules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) > 0 {
		return partRules(r)
	}
	if r.PC < r.Start || r.PC-r.Start >= uint64(len(r.Code)) {
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, does not hold the PC %#x", r.Start, len(r.Code), r.PC)}
	}
	if r.Start+uint64(len(r.Code)) < r.Start {
		return sdk.FrameRules{Reason: fmt.Sprintf("the code at %#x, %d bytes, goes past the end of the address space", r.Start, len(r.Code))}
	}
	at := int(r.PC - r.Start)
	if rows := trampolineRows(r, at); rows != nil {
		return sdk.FrameRules{Rows: rows, Trampoline: true}
	}
	for _, known := range []func(*sdk.CodeRange, int) (cfi.Row, bool){deepestRow, interpreterRow} {
		if row, ok := known(r, at); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}}
		}
	}
	if isUncalled(r, at) {
		return sdk.FrameRules{Reason: "the code is not entered by calls: it goes on through a stack of its own", Uncalled: true}
	}
	kind, _ := functionKind(r.Name)
	if kind == sdk.OutermostFunction && r.Bounded {
		return sdk.FrameRules{Rows: []cfi.Row{outermostRow(r.Start, r.Start+uint64(len(r.Code)))}}
	}
	if kind == sdk.StackSwitchFunction && r.Bounded && len(r.Code) <= maxCode {
		if row, ok := switchRow(r, at); ok {
			return sdk.FrameRules{Rows: []cfi.Row{row}}
		}
	}
	linkage := strings.Contains(r.Name, "plt")
	if linkage || !r.Bounded {
		if rows := pltRows(r, at); rows != nil {
			return sdk.FrameRules{Rows: rows}
		}
	}
	reason := ""
	if r.Bounded && !linkage && isCalledAtStart(r.Name) {
		if len(r.Code) > maxCode {
			reason = fmt.Sprintf("a function of %d bytes, of which %d at most are read", len(r.Code), maxCode)
		} else if rows, err := functionRows(codeflow.OnePiece(r.Start, r.Code), orderOf(kind)); err != nil {
			reason = err.Error()
		} else if hasRowAt(rows, r.PC) {
			return sdk.FrameRules{Rows: forNewThreads(rows, r.Start, r.Code)}
		} else {
			reason = "reading the function from its start does not show its frame here"
		}
	}
	rows, ahead := aheadRows(r, at)
	if rows != nil {
		return sdk.FrameRules{Rows: forNewThreads(rows, r.Start, r.Code)}
	}
	if reason != "" {
		ahead = reason + "; " + ahead
	}
	return sdk.FrameRules{Reason: ahead}
}

// betweenPieces is what no way leads through, longer than an instruction: int3.
var betweenPieces = bytes.Repeat([]byte{0xCC}, 16)

// partRules reads a function with its parts from its first instruction.
func partRules(r *sdk.CodeRange) sdk.FrameRules {
	pieces := codeflow.OnePiece(r.Start, r.Code)
	for i := range r.Parts {
		pieces.Add(r.Parts[i].Start, r.Parts[i].Code, betweenPieces)
	}
	start, code := r.Piece(r.PC)
	kind, _ := functionKind(r.Name)
	if code == nil || !r.Bounded || kind != sdk.OrdinaryFunction || len(pieces.Code) > maxCode || !isCalledAtStart(r.Name) {
		return sdk.FrameRules{Reason: "the parts of a function are read with it from its start, and it has none that is known"}
	}
	rows, err := functionRows(pieces, orderOf(kind))
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	rows = slices.DeleteFunc(rows, func(row cfi.Row) bool { return row.Start-start >= uint64(len(code)) })
	if !hasRowAt(rows, r.PC) {
		return sdk.FrameRules{Reason: "reading the function from its start does not lead to its part here"}
	}
	return sdk.FrameRules{Rows: rows}
}

// orderOf is the order of registers by which frames of a kind of function are
// found.
func orderOf(kind sdk.FunctionKind) *[gprCount]uint8 {
	if kind == sdk.StackStartFunction || kind == sdk.StackSwitchFunction {
		return &stackOrder
	}
	return &searchOrder
}

// isCalledAtStart says whether a function of that name begins with a return
// address on the stack. Compilers name the unlikely part of a function, which a
// jump enters in mid-frame, after the function; the dynamic linker's resolvers
// are entered from the linkage table, with two words more on the stack.
func isCalledAtStart(name string) bool {
	_, isPart := sdk.PartOf(name)
	return !isPart && !strings.HasPrefix(name, "_dl_runtime_resolve") && !strings.HasPrefix(name, "_dl_runtime_profile") &&
		!strings.HasPrefix(name, "_dl_tlsdesc_")
}

// outermostRow is that of a function that nothing called: the return address is
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
