// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// Answer answers a request for FrameRules: rules returns the rows of code, and exits where the
// code goes on.
func Answer(ctx context.Context, req *sdk.FrameRulesRequest, rules func(*sdk.CodeRange) sdk.FrameRules, exits func(*sdk.CodeRange) *sdk.CodeExits) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{Functions: make([]sdk.FrameRules, len(req.Functions))}
	for i := range req.Functions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, out := &req.Functions[i], &answer.Functions[i]
		size := uint64(len(r.Code))
		switch {
		case r.Exits:
			out.Exits = exits(r)
		case len(r.Parts) == 0 && r.PC-r.Start >= size:
			out.Reason = fmt.Sprintf("the code at %#x, %d bytes, does not hold the PC %#x", r.Start, size, r.PC)
		case len(r.Parts) == 0 && r.Start+size < r.Start:
			out.Reason = fmt.Sprintf("the code at %#x, %d bytes, goes past the end of the address space", r.Start, size)
		default:
			*out = rules(r)
		}
	}
	return answer, nil
}

// Reader reads the code of functions.
type Reader struct {
	Unit      uint64 // addresses of instructions are multiples of it
	MaxCode   int    // the size of the largest function that is read, in bytes
	Separator []byte // code that no edge leads through, as long as an instruction

	// HasEntry reports whether a function begins with the frame of a call.
	HasEntry func(r *sdk.CodeRange) bool
	// Function reads a function from its first instruction.
	Function func(r *sdk.CodeRange, code *Pieces) ([]cfi.Row, error)
	// Ahead finds the row at a PC by the code ahead of it, or the reason why there is none.
	Ahead func(r *sdk.CodeRange) (rows []cfi.Row, reason string)
}

// Rules returns the rows of a function whose bounds are known. Otherwise, or where these do not
// show the frame at the PC, it returns a row for the PC alone, by the code ahead of it.
func (c *Reader) Rules(r *sdk.CodeRange) sdk.FrameRules {
	if len(r.Parts) > 0 {
		return c.partRules(r)
	}
	rows, reason := c.fromStart(r)
	if rows != nil {
		return sdk.FrameRules{Rows: rows}
	}
	rows, ahead := c.Ahead(r)
	if rows != nil {
		return sdk.FrameRules{Rows: rows}
	}
	if reason != "" {
		ahead = reason + "; " + ahead
	}
	return sdk.FrameRules{Reason: ahead}
}

// fromStart reads a function from its first instruction. reason is empty where that is not
// known.
func (c *Reader) fromStart(r *sdk.CodeRange) (rows []cfi.Row, reason string) {
	switch {
	case !r.Bounded || !c.HasEntry(r):
		return nil, ""
	case r.Start%c.Unit != 0:
		return nil, fmt.Sprintf("the code at %#x is not on an address of instructions, which are at multiples of %d", r.Start, c.Unit)
	case uint64(len(r.Code)) < c.Unit:
		return nil, fmt.Sprintf("the code at %#x has %d bytes, an instruction has %d", r.Start, len(r.Code), c.Unit)
	case len(r.Code) > c.MaxCode:
		return nil, fmt.Sprintf("a function of %d bytes, of which %d at most are read", len(r.Code), c.MaxCode)
	}
	rows, err := c.Function(r, OnePiece(r.Start, r.Code))
	switch {
	case err != nil:
		return nil, err.Error()
	case !Rows(rows).Covers(r.PC):
		return nil, "reading the function from its start does not show its frame here"
	}
	return rows, ""
}

// partRules reads a function with its parts from its first instruction.
func (c *Reader) partRules(r *sdk.CodeRange) sdk.FrameRules {
	pieces := OnePiece(r.Start, r.Code)
	unaligned := r.Start | uint64(len(r.Code))
	for i := range r.Parts {
		p := &r.Parts[i]
		pieces.Add(p.Start, p.Code, c.Separator)
		unaligned |= p.Start | uint64(len(p.Code))
	}
	start, code := r.Piece(r.PC)
	if code == nil || !r.Bounded || unaligned%c.Unit != 0 || len(pieces.Code) > c.MaxCode || !c.HasEntry(r) {
		return sdk.FrameRules{Reason: "the parts of a function are read with it from its start, and it has none that is known"}
	}
	rows, err := c.Function(r, pieces)
	if err != nil {
		return sdk.FrameRules{Reason: err.Error()}
	}
	rows = slices.DeleteFunc(rows, func(row cfi.Row) bool { return row.Start-start >= uint64(len(code)) })
	if !Rows(rows).Covers(r.PC) {
		return sdk.FrameRules{Reason: "reading the function from its start does not lead to its part here"}
	}
	return sdk.FrameRules{Rows: rows}
}

// IsCalledAtStart reports whether the function with a name is called at its first instruction.
// Compilers name the unlikely part of a function, which a jump enters in mid-frame, after the
// function; the dynamic linker's resolvers are entered from the linkage table, with words of it
// on the stack.
func IsCalledAtStart(name string) bool {
	_, isPart := sdk.PartOf(name)
	return !isPart && !strings.HasPrefix(name, "_dl_runtime_resolve") && !strings.HasPrefix(name, "_dl_runtime_profile") &&
		!strings.HasPrefix(name, "_dl_tlsdesc_")
}
