// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// comparedFrames writes the frames of a comparison.
type comparedFrames struct {
	c      *trace.Comparison
	isFull bool
	// lines has, for each node by functions, its node by lines where it has one alone; -1: it has several.
	lines []int
}

func newComparedFrames(c *trace.Comparison, isFull bool) comparedFrames {
	f := comparedFrames{c: c, isFull: isFull, lines: make([]int, len(c.Functions))}
	for i := range f.lines {
		f.lines[i] = -2
	}
	for i := range c.Lines {
		switch line := &f.lines[c.Lines[i].Function]; *line {
		case -2:
			*line = i
		default:
			*line = -1
		}
	}
	return f
}

// comparedName is the name of a frame in at most a number of characters, or whole.
func (f *comparedFrames) comparedName(frame *trace.ComparedFrame, most int) string {
	mark := ""
	if frame.IsGuess {
		mark = " (a guess)"
	}
	return escape.Text(frameName(frame, f.isFull, most)) + mark
}

// frameName is the name of a frame, or its place in a module where it has none.
func frameName(frame *trace.ComparedFrame, isFull bool, most int) string {
	switch {
	case frame.Function == "" && frame.Module == "" && frame.Offset == 0:
		return "??"
	case frame.Function == "":
		return strings.TrimPrefix(frame.Module+"+"+address(frame.Offset), "+")
	case isFull:
		return frame.Function
	}
	return funcname.Fit(escape.Text(cmp.Or(frame.Short, frame.Function)), most)
}

// lineIn is the frame with its line of a node by functions, in the stacks of a class; -1 stands for all classes. nil: it has
// several lines, or none.
func (f *comparedFrames) lineIn(node, class int) *trace.ComparedFrame {
	if n := f.lines[node]; n >= 0 {
		return &f.c.Lines[n].Frame
	}
	if class < 0 || len(f.c.Classes[class].Variants) != 1 {
		return nil
	}
	found := -1
	for i := range f.c.Classes[class].Variants[0].Threads {
		for n := f.c.Classes[class].Variants[0].Threads[i].Node; n >= 0; n = f.c.Lines[n].Parent {
			if f.c.Lines[n].Function == node && n != found {
				if found >= 0 {
					return nil
				}
				found = n
			}
		}
	}
	if found < 0 {
		return nil
	}
	return &f.c.Lines[found].Frame
}

// linePlace is the file and the line of a frame; "" where they are not known.
func linePlace(frame *trace.ComparedFrame) string {
	if frame == nil || frame.Line == 0 {
		return ""
	}
	return cutFront(escape.Text(path.Base(frame.File)+":"+strconv.Itoa(frame.Line)), 32)
}

// frame is a frame with its line.
func (f *comparedFrames) frame(node, class, most int) string {
	place := linePlace(f.lineIn(node, class))
	text := f.comparedName(&f.c.Functions[node].Frame, max(min(most, textName), 8))
	if place != "" {
		text += " " + place
	}
	return text
}

// placeOf is the file and the line of a node by lines; "" where it has none.
func (f *comparedFrames) placeOf(node int) string {
	if node < 0 {
		return ""
	}
	return linePlace(&f.c.Lines[node].Frame)
}

// lineOf is a frame of a node by lines.
func (f *comparedFrames) lineOf(node int) string {
	frame := &f.c.Lines[node].Frame
	return strings.TrimSpace(f.comparedName(&f.c.Functions[f.c.Lines[node].Function].Frame, textName/2) + " " + linePlace(frame))
}

// leastEnd is how many characters of the name of a chain's last frame are kept at least.
const leastEnd = 16

// chain is frames from the outermost on in about a number of characters: the first with its line, as many
// as fit, how many are left out, and the last. Of the first one's name at least a number of characters is kept.
func (f *comparedFrames) chain(nodes []int, class, most, least int) string {
	name := func(i, room int) string {
		return f.comparedName(&f.c.Functions[nodes[i]].Frame, max(min(room, textName), 8))
	}
	last := len(nodes) - 1
	switch last {
	case -1:
		return "no frame"
	case 0:
		return f.withLine(name(0, most), nodes[0], class, most)
	}
	const between = " > "
	gap := func(next int) string {
		if next >= last {
			return ""
		}
		return between + f.gap(nodes[next:last])
	}
	// The name of the first frame, where a class parts, is the last to be cut, and then its line.
	leastEnd := min(leastEnd, utf8.RuneCountInString(name(last, textName)))
	around := utf8.RuneCountInString(gap(1) + between)
	first := name(0, max(most-around-leastEnd, least))
	begin := f.withLine(first, nodes[0], class, most-around-leastEnd)
	end := between + name(last, max(min(most/2, most-around-utf8.RuneCountInString(begin)), leastEnd))
	room := most - utf8.RuneCountInString(end)
	next := 1
	for next < last {
		longer := begin + between + name(next, textName)
		if utf8.RuneCountInString(longer+gap(next+1)) > room {
			break
		}
		begin = longer
		next++
	}
	return begin + gap(next) + end
}

// withLine is a frame with its line, where that fits.
func (f *comparedFrames) withLine(text string, node, class, room int) string {
	place := linePlace(f.lineIn(node, class))
	if place == "" || utf8.RuneCountInString(text)+1+utf8.RuneCountInString(place) > room {
		return text
	}
	return text + " " + place
}

// gap says how many frames are left out, and how many of them are guesses.
func (f *comparedFrames) gap(nodes []int) string {
	guesses := 0
	for _, n := range nodes {
		if f.c.Functions[n].Frame.IsGuess {
			guesses++
		}
	}
	text := "... " + plural(len(nodes), "frame", "frames")
	if guesses > 0 {
		text += fmt.Sprintf(", %d a guess", guesses)
	}
	return text
}
