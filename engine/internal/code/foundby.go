// SPDX-License-Identifier: Apache-2.0

package code

import "github.com/unwindd/unwindd/engine/trace"

// A FoundIndex is a FoundBy in a byte: profiles have millions.
type FoundIndex uint8

var allFound = [...]trace.FoundBy{trace.ByCFI, trace.ByContext, trace.ByObject, trace.ByRules, trace.ByFramePointer, trace.ByScan, trace.ByCallChain, trace.ByLaunch, trace.ByCallSite, trace.ByBreakpad, trace.ByPE, trace.ByBackChain, trace.ByRuntime, trace.ByProfiler, trace.ByFrameData, trace.ByCompactUnwind, trace.ByReport, trace.ByFunctionBody}

// IndexOf returns a FoundBy as a byte.
func IndexOf(b trace.FoundBy) FoundIndex {
	if b == trace.ByCFI { // as nearly all frames
		return 0
	}
	for i := range allFound {
		if allFound[i] == b {
			return FoundIndex(i)
		}
	}
	return 0
}

// FoundBy returns the method of the byte.
func (i FoundIndex) FoundBy() trace.FoundBy { return allFound[i] }

// IsKnown reports whether the byte stands for a method.
func (i FoundIndex) IsKnown() bool { return int(i) < len(allFound) }
