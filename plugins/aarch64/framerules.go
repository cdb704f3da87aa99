// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
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
// A function whose bounds are known is followed from its first instruction; its rows cover
// every instruction whose frame is certain. Without bounds, only what lies ahead of the PC
// counts: a return that the code leads to shows where the return address is. The rows of a
// linkage table and of a signal trampoline are known by their code.
//
// A PC that is not exact is an address inside a call that has not returned: the last byte of
// the call, or what precedes a signal trampoline, which nobody calls.
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
	if isLinkage(r.Name) || !r.Bounded {
		if rows := stubRows(r); rows != nil {
			return sdk.FrameRules{Rows: rows}
		}
	}
	rows, reason := rowsFromStart(r)
	if rows != nil {
		return sdk.FrameRules{Rows: rows}
	}
	row, ahead := aheadRow(r)
	if ahead == "" {
		return sdk.FrameRules{Rows: []cfi.Row{row}}
	}
	if reason != "" {
		ahead = reason + "; " + ahead
	}
	return sdk.FrameRules{Reason: ahead}
}

// betweenPieces is what no way leads through: brk.
var betweenPieces = []byte{0x00, 0x00, 0x20, 0xd4}

// partRules reads a function with its parts from its first instruction.
func partRules(r *sdk.CodeRange) sdk.FrameRules {
	pieces := codeflow.OnePiece(r.Start, r.Code)
	isAligned := (r.Start|uint64(len(r.Code)))%instructionSize == 0
	for i := range r.Parts {
		pieces.Add(r.Parts[i].Start, r.Parts[i].Code, betweenPieces)
		isAligned = isAligned && (r.Parts[i].Start|uint64(len(r.Parts[i].Code)))%instructionSize == 0
	}
	start, code := r.Piece(r.PC)
	if code == nil || !r.Bounded || !isAligned || len(pieces.Code) > maxCode || isLinkage(r.Name) || !isCalledAtStart(r.Name) {
		return sdk.FrameRules{Reason: "the parts of a function are read with it from its start, and it has none that is known"}
	}
	rows, err := functionRows(pieces)
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	rows = slices.DeleteFunc(rows, func(row cfi.Row) bool { return row.Start-start >= uint64(len(code)) })
	if !hasRowAt(rows, r.PC) {
		return sdk.FrameRules{Reason: "reading the function from its start does not lead to its part here"}
	}
	return sdk.FrameRules{Rows: rows}
}

// rowsFromStart reads a function whose bounds are known. Reason says why it has no row for
// the PC; it is empty where the code does not begin as functions do.
func rowsFromStart(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	switch {
	case !r.Bounded || isLinkage(r.Name) || !isCalledAtStart(r.Name):
		return nil, ""
	case r.Start%instructionSize != 0:
		return nil, fmt.Sprintf("the code at %#x is not on an address of instructions, which are at multiples of 4", r.Start)
	case len(r.Code) < instructionSize:
		return nil, fmt.Sprintf("the code at %#x has %d bytes, an instruction has 4", r.Start, len(r.Code))
	case len(r.Code) > maxCode:
		return nil, fmt.Sprintf("a function of %d bytes, of which %d at most are read", len(r.Code), maxCode)
	}
	rows, err := functionRows(codeflow.OnePiece(r.Start, r.Code))
	switch {
	case err != nil:
		return nil, err.Error()
	case !hasRowAt(rows, r.PC):
		return nil, "reading the function from its start does not show its frame here"
	}
	return rows, ""
}

// isCalledAtStart says whether a function of that name begins with a return address in
// the link register. Compilers name the unlikely part of a function, which a jump
// enters in mid-frame, after the function; entries of the linkage table enter the
// dynamic linker's resolvers with words of theirs on the stack.
func isCalledAtStart(name string) bool {
	_, isPart := sdk.PartOf(name)
	return !isPart && !strings.HasPrefix(name, "_dl_runtime_resolve") && !strings.HasPrefix(name, "_dl_runtime_profile") &&
		!strings.HasPrefix(name, "_dl_tlsdesc_")
}
