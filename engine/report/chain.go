// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/trace"
)

// chain writes the frames of a thread in order, and notes in place of omitted ones.
type chain struct {
	isWhole bool // all repetitions of a recursion are written
	names   names
	rows    []signature.Row // of the frames: their notes stand in their place, unless isWhole
	// frames writes frames, of which the first has an index, and returns the index of the
	// next one.
	frames func(frames []trace.Frame, index int) (next int)
	note   func(text string) // writes a note in place of frames that are not shown
	// behind takes the frames that the last note stands for; nil: they are not needed.
	behind func(frames []trace.Frame, index int)
}

// write writes frames, of which the first has an index, and the ones outside a gap. It
// returns the index of the next frame.
func (c *chain) write(frames []trace.Frame, gap *trace.Gap, index int) (next int) {
	next = c.unread(frames, index)
	if gap.LeftOut == 0 {
		return next
	}
	left := "frames"
	if gap.LeftOut == 1 {
		left = "frame"
	}
	c.note(fmt.Sprintf("... %s %s left out", grouped(gap.LeftOut), left))
	return c.folded(gap.Outermost, next+gap.LeftOut+gap.LeftOutCalls)
}

// leastFolded is the least number of lines that the note of a row stands for.
const leastFolded = 2

// leastLines returns the least number of lines of a row that are folded: a frame of the language
// tells as much as all native ones behind it.
func leastLines(r *signature.Row) int {
	if r.IsBehind {
		return 1
	}
	return leastFolded
}

// unread writes frames without the rows of a run-time library that ended the program, or by which
// a language runtime executes functions.
func (c *chain) unread(frames []trace.Frame, index int) (next int) {
	start, next := 0, index
	for _, r := range c.rows {
		count := countLines(frames[r.First:r.End])
		if c.isWhole || count < leastLines(&r) {
			continue
		}
		next = c.folded(frames[start:r.First], next)
		if count == 1 {
			c.note(fmt.Sprintf("... 1 frame of %s (frame #%d)", r.Subject, next))
		} else {
			c.note(fmt.Sprintf("... %s frames of %s (frames #%d to #%d)", grouped(count), r.Subject, next, next+count-1))
		}
		if c.behind != nil {
			c.behind(frames[r.First:r.End], next)
		}
		start, next = r.End, next+count
	}
	return c.folded(frames[start:], next)
}

// FramesFor returns how many physical frames of a stack are n and the frames of rows that are folded
// among them.
func FramesFor(s *trace.Stack, n int) int {
	for _, r := range signature.Read(s, 0).Rows {
		if r.First < n && countLines(s.Frames[r.First:r.End]) >= leastLines(&r) {
			n += r.End - r.First
		}
	}
	return n
}

// folded writes consecutive frames: of a recursion only the first and the last repetition.
func (c *chain) folded(frames []trace.Frame, index int) (next int) {
	if !c.isWhole {
		if parts := cyclesOf(frames); parts != nil {
			return c.parts(frames, parts, index)
		}
	}
	return c.frames(frames, index)
}

func (c *chain) parts(frames []trace.Frame, parts []part, index int) (next int) {
	for i := range parts {
		p := &parts[i]
		if p.cycle == nil {
			index = c.frames(frames[p.first:p.end], index)
			continue
		}
		index = c.parts(frames, p.parts[:p.period], index)
		hidden := linesOf(frames, p.middle())
		c.note(c.describeCycle(frames, p.cycle) + fmt.Sprintf(" (frames #%d to #%d)", index, index+hidden-1))
		index = c.parts(frames, p.parts[len(p.parts)-p.period:], index+hidden)
	}
	return index
}

// describeCycle names the functions that are repeated, and the number of omitted repetitions.
func (c *chain) describeCycle(frames []trace.Frame, p *cycle) string {
	names := strings.Join(c.functionsOf(frames, p.parts[:p.period]), " < ")
	times := grouped(p.times() - 2)
	switch n := p.linesOfEach(frames); n {
	case 0:
		return fmt.Sprintf("... the cycle %s repeats %s times", names, times)
	case 1:
		return fmt.Sprintf("... the frame of %s repeats %s times", names, times)
	default:
		return fmt.Sprintf("... the %d frames of the cycle %s repeat %s times", n, names, times)
	}
}

// grouped is a number with a comma between its thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
