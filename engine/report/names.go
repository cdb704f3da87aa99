// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// The longest short names, in characters.
const (
	// textName is for terminals: behind an address, and with an offset, such a name leaves room
	// for the begin of the place in a line of 80 characters.
	textName = 40
	pageName = 80
)

// names writes the names of functions.
type names struct {
	isFull bool
	most   int // characters of a short name
}

// of returns the name of a function; ?? where it has none.
func (n names) of(s *trace.Symbol) string {
	name := cmp.Or(s.Function, "??")
	if n.isFull {
		return name
	}
	return funcname.Fit(escape.Text(shortOf(s)), n.most)
}

// shortOf returns the name of a function for people; see funcname.Short.
func shortOf(s *trace.Symbol) string {
	if s.IsDecoded {
		return cmp.Or(s.Function, "??")
	}
	return cmp.Or(funcname.Short(s.Function, s.LinkageName, s.File), "??")
}
