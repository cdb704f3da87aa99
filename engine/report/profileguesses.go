// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/engine/trace"
)

// guessCounts says how many stacks of the requested samples have frames that are guesses.
type guessCounts struct {
	all     uint64
	guessed uint64 // with a guess
	gaps    uint64 // with a frame that a scan found: it skipped a part of the stack
}

// countGuesses counts stacks with guesses.
func (r *Profile) countGuesses() (c guessCounts) {
	const isGuessed, hasGap = 1, 2
	marks := make([]uint8, len(r.p.Stacks))
	for i := 1; i < len(marks); i++ {
		s := &r.p.Stacks[i]
		marks[i] = marks[s.Caller]
		switch found := r.p.Frames[s.Frame].FoundBy; {
		case found == trace.ByScan:
			marks[i] |= isGuessed | hasGap
		case found.IsGuess():
			marks[i] |= isGuessed
		}
	}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if !r.isRequested(s) {
			continue
		}
		c.all += s.Count()
		c.guessed += uint64(marks[s.Stack]&isGuessed) * s.Count()
		c.gaps += uint64(marks[s.Stack]&hasGap/hasGap) * s.Count()
	}
	return c
}

// text is the line of a summary; "" where there is no guess.
func (c *guessCounts) text() string {
	if c.guessed == 0 {
		return ""
	}
	text := fmt.Sprintf("guesses: %d of %s (%s) have a frame that is a guess: frames may be missing below it",
		c.guessed, plural(int(c.all), "stack", "stacks"), c.share(c.guessed)) //nolint:gosec // a count
	if c.gaps > 0 {
		text += fmt.Sprintf("; %d (%s) have a gap, which a scan of the stack skipped", c.gaps, c.share(c.gaps))
	}
	return text
}

func (c *guessCounts) share(n uint64) string { return strings.TrimSpace(percent(n, c.all)) }

// facts are the shares for a page.
func (c *guessCounts) facts() (list []flamepage.Fact) {
	if c.guessed > 0 {
		list = append(list, flamepage.Fact{Name: "stacks with a guess", Value: c.share(c.guessed)})
	}
	if c.gaps > 0 {
		list = append(list, flamepage.Fact{Name: "stacks with a gap", Value: c.share(c.gaps)})
	}
	return list
}
