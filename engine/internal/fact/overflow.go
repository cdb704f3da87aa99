// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
)

// overflowed begins the text about a stack overflow.
const overflowed = "stack overflow"

// IsStackOverflow reports whether a line from Of is about a stack overflow.
func IsStackOverflow(text string) bool { return strings.HasPrefix(text, overflowed) }

// overflow explains a fault right below a stack: its guard page, or its limit.
func (c *crash) overflow() string {
	if c.machine == nil {
		return ""
	}
	sp, ok := c.register(c.machine.SP)
	address, isKnown := c.failed()
	if !ok || !isKnown || !c.isBelowStack(address, sp) {
		return ""
	}
	return overflowed + ": " + c.recursion() + c.whatDid(c.failing(address), address)
}

// failed returns the address that could not be accessed: from the signal, or, where the target
// has none, from the access of the instruction which must have failed.
func (c *crash) failed() (address uint64, ok bool) {
	if c.hasAddress {
		return c.address, true
	}
	if c.kept.HasCode {
		return 0, false // a protection fault, which has other reasons
	}
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		if address, ok := c.effective(a); ok && c.isRefused(address, a) {
			return address, true
		}
	}
	return 0, false
}

// A stack that overflows is accessed within these distances: of its pointer, because a function
// with a large frame touches it in any order, and of the mapping above, because the function
// that overflows it may have moved the pointer far.
const (
	stackReach = 1 << 24
	guardSize  = 1 << 20
	redZone    = 1 << 8 // below the pointer
)

// isBelowStack reports whether an address lies below the mapping of the stack with sp: the
// frames of the callers are right above it.
func (c *crash) isBelowStack(address, sp uint64) bool {
	if address-sp+stackReach > 2*stackReach && address < sp {
		return false
	}
	_, at, above := c.around(address)
	if at != nil && hasRights(at) || above == nil {
		return false
	}
	// A function with a large frame moves the pointer past the guard page at once.
	hasLeft := sp < above.Start && address+redZone >= sp
	if above.Start-address > guardSize && !hasLeft {
		return false
	}
	if !above.IsWritable || above.File != "" {
		return false
	}
	for i := range c.stack.Frames { // a frame of a caller is in the mapping above
		f := &c.stack.Frames[i]
		if f.HasCFA && f.CFA >= above.Start && f.CFA < above.End {
			return true
		}
	}
	return false
}

const (
	maxCycle  = 64 // functions in a cycle of a recursion
	maxSkip   = 64 // frames of functions that the innermost one of the cycle called
	minRounds = 3
	maxJudged = 1 << 12 // frames by which a cycle is found
)

// recursion names the cycle of functions that a deep stack consists of.
func (c *crash) recursion() string {
	cycle, frames := cycleOf(c.stack.Frames)
	if len(cycle) == 0 {
		return ""
	}
	least := ""
	if c.stack.Stopped.Reason == trace.StopFrameLimit {
		least = "at least "
	}
	if len(cycle) == 1 {
		return fmt.Sprintf("%s calls itself %s%d times; ", cycle[0], least, frames)
	}
	return fmt.Sprintf("%s call each other %s%d times; ", strings.Join(cycle, ", "), least, frames/len(cycle))
}

// cycleOf returns the shortest cycle of functions that most frames belong to, a caller before
// its callee, and how many frames do.
func cycleOf(frames []trace.Frame) (cycle []string, length int) {
	ids := make([]string, min(len(frames), maxJudged))
	for i := range ids {
		ids[i] = functionOf(&frames[i])
	}
	best, first := 0, 0
	for skip := 0; skip < min(maxSkip, len(ids)); skip++ {
		for period := 1; period <= maxCycle && skip+period*minRounds <= len(ids); period++ {
			n := skip + period
			for n < len(ids) && ids[n] == ids[n-period] {
				n++
			}
			if n -= skip; n >= period*minRounds && n > length+maxSkip {
				best, first, length = period, skip, n
			}
		}
	}
	if best == 0 {
		return nil, 0
	}
	for n := first + length; n < len(frames) && functionOf(&frames[n]) == ids[first+(n-first)%best]; n++ {
		length++
	}
	for i := first + best - 1; i >= first; i-- {
		if n := len(frames[i].Symbols); n > 0 {
			cycle = append(cycle, funcname.Of(&frames[i].Symbols[n-1]))
			continue
		}
		cycle = append(cycle, ids[i])
	}
	return rotated(cycle), length
}

// rotated returns a cycle from its first name in the order of the alphabet: it is chance where
// it was entered, and where the stack ended.
func rotated(cycle []string) []string {
	least := 0
	for i := range cycle {
		if cycle[i] < cycle[least] {
			least = i
		}
	}
	return append(cycle[least:len(cycle):len(cycle)], cycle[:least]...)
}

// functionOf names the physical function of a frame; its PC where it has no name.
func functionOf(f *trace.Frame) string {
	if n := len(f.Symbols); n > 0 {
		return f.Symbols[n-1].Function
	}
	return fmt.Sprintf("%#x", f.PC)
}
