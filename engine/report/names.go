// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// The longest short names, in characters.
const (
	// textName is for terminals: behind an address, and with an offset, such a name leaves room
	// for the begin of the place in a line of 80 characters.
	textName = 40
	// wideName is for pages, and for tables of functions.
	wideName = 80
)

// names writes the names of functions.
type names struct {
	isFull bool
	most   int // characters of a short name; 0: all names are full
}

// of returns the name of a function; ?? where it has none.
func (n names) of(s *trace.Symbol) string {
	switch {
	case s.Function == "":
		return "??"
	case n.isFull || n.most == 0:
		return s.Function
	}
	return funcname.Fit(escape.Text(funcname.Of(s)), n.most)
}

// ofProfile returns the name of a function of a profile. A mark at its end stays.
func (n names) ofProfile(f *profileFunction) string {
	mark := " [" + f.namedBy + "]"
	name, isMarked := strings.CutSuffix(f.name, mark)
	if name = n.of(&trace.Symbol{Function: name, File: f.file}); isMarked {
		name += mark
	}
	return name
}

// readStack finds the frames of a stack that readers look for. caught is the crash that a handler
// caught before; nil: there was none.
func readStack(s *trace.Stack, caught *trace.CaughtCrash) *signature.Reading {
	first := 0
	if caught != nil && caught.Thread == s.Thread.ID {
		first = min(len(caught.Inside), len(s.Frames))
	}
	return signature.Read(s, first)
}

// ownIndex returns the index, in a report, of the program's own function that is the innermost
// one; -1: there is none.
func ownIndex(s *trace.Stack, r *signature.Reading) int {
	if !r.HasOwn {
		return -1
	}
	return countLines(s.Frames[:r.Own]) + r.Level
}
