// SPDX-License-Identifier: Apache-2.0

package symbol

import "github.com/unwindd/unwindd/engine/trace"

// FunctionCode is a function that has code, with the frames that Frames gives for its
// addresses.
type FunctionCode struct {
	trace.Symbol // of the function itself: its names and start
	// Ranges are the code for which Frames names the function, by address and disjoint.
	Ranges []CodeRange
	// IsShared is set where another function, of another name, shares some of the code:
	// linkers fold equal functions, and Frames names one of them.
	IsShared bool
	Lines    []CodeLine
	// Calls are the inlined calls that have code, each after the call around it.
	Calls []InlinedCall
}

// CodeRange is code from Start up to, but not including, End: addresses as in Source.
type CodeRange struct{ Start, End uint64 }

// CodeLine is code and its line. File is "" and Line 0 where the line table gives none.
type CodeLine struct {
	CodeRange
	File string
	Line int
}

// InlinedCall is a call that was inlined into a function.
type InlinedCall struct {
	Function string // as in trace.Symbol
	// Depth is 0 for a call in the function itself, and one more than the depth of the call
	// around it for others.
	Depth    int
	CallFile string // file of the call; "": unknown
	CallLine int    // line of the call; 0: unknown
	Ranges   []CodeRange
}

// LineRow is a row of a line table and the code that it is for.
type LineRow struct {
	Start, End uint64 // addresses as in Source
	// Frames are the positions, innermost first: of the row, and of the calls around it that
	// the line table has. The last is of the function that has the code, and has no name.
	Frames []trace.Symbol
}
