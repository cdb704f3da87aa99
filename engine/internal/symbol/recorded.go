// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// IsBetterRecorded reports whether the functions that a report or a recording has of a frame say more than the ones
// that its code object has: where this names none, or has no line and the report has one.
func IsBetterRecorded(own, recorded []trace.Symbol) bool {
	return len(recorded) > 0 && (len(own) == 0 || !hasLine(own) && hasLine(recorded))
}

// hasLine reports whether a function has a line of source.
func hasLine(list []trace.Symbol) bool {
	return slices.ContainsFunc(list, func(s trace.Symbol) bool { return s.Line > 0 })
}
