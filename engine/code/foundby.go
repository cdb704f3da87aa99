// SPDX-License-Identifier: Apache-2.0

package code

// FoundBy is the method by which a frame was found. A guess is never presented as a fact:
// ByFramePointer and ByScan are guesses.
type FoundBy string

// The methods to find a frame.
const (
	ByContext      FoundBy = "context"       // the thread's own registers
	ByCFI          FoundBy = "cfi"           // .eh_frame, .debug_frame, .sframe or .gopclntab of the callee
	ByBreakpad     FoundBy = "breakpad"      // STACK CFI of the callee's Breakpad symbol file
	ByPE           FoundBy = "pe"            // .pdata and .xdata of the callee, a PE file
	ByObject       FoundBy = "object"        // rows that the architecture's plugin read from the callee's code object
	ByRules        FoundBy = "rules"         // rows that the plugin found by reading the callee's code
	ByFramePointer FoundBy = "frame-pointer" // the architecture's frame-pointer convention
	ByScan         FoundBy = "scan"          // a word of the stack that follows a call
	ByCallChain    FoundBy = "callchain"     // recorded by the kernel when the sample was taken
	ByLaunch       FoundBy = "launch"        // recorded when its thread launched another
	ByCallSite     FoundBy = "call-site"     // left by a tail call; its caller's call site and its own say so
)

// IsGuess reports whether the method is a guess.
func (b FoundBy) IsGuess() bool { return b == ByFramePointer || b == ByScan }

// IsDescribed reports whether a compiler's description of the callee's code was used.
func (b FoundBy) IsDescribed() bool { return b == ByCFI || b == ByBreakpad || b == ByPE }

// A FoundIndex is a FoundBy in a byte: profiles have millions.
type FoundIndex uint8

var allFound = [...]FoundBy{ByCFI, ByContext, ByObject, ByRules, ByFramePointer, ByScan, ByCallChain, ByLaunch, ByCallSite, ByBreakpad, ByPE}

// IndexOf returns a FoundBy as a byte.
func IndexOf(b FoundBy) FoundIndex {
	if b == ByCFI { // as nearly all frames
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
func (i FoundIndex) FoundBy() FoundBy { return allFound[i] }

// IsKnown reports whether the byte stands for a method.
func (i FoundIndex) IsKnown() bool { return int(i) < len(allFound) }
