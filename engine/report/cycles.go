// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds recursions: consecutive frames of equal functions, repeated again and
// again.

const (
	// maxPeriod is the largest number of parts of a cycle. Recursive parsers and interpreters
	// have cycles of some dozens of functions.
	maxPeriod = 128
	// minHidden is the least number of physical frames in the repetitions of a cycle, except
	// the first and the last one, to replace them by a line.
	minHidden = 16
	// maxLevels bounds the nesting of cycles in cycles.
	maxLevels = 3
	// maxNamed is the largest number of functions of a cycle that are named.
	maxNamed = 8
)

// part is a physical frame of a stack, or a repeated cycle of parts.
type part struct {
	key        uint32 // equal for equal functions, and for cycles of them
	first, end uint32 // of the frames of the stack
	*cycle            // nil: the part is a frame
}

// cycle is the parts of all its repetitions, period parts each.
type cycle struct {
	parts  []part
	period int
}

// middle are the repetitions of a cycle except the first and the last one.
func (p *cycle) middle() []part { return p.parts[p.period : len(p.parts)-p.period] }

// times is the number of repetitions of a cycle.
func (p *cycle) times() int { return len(p.parts) / p.period }

// frameKind identifies frames whose texts need not be compared: frames at one PC share their
// symbols.
type frameKind struct {
	symbols                  *trace.Symbol
	pc                       uint64 // where there are no symbols
	isGuess, rests, isSignal bool
}

// cycleFinder gives numbers to functions and to cycles.
type cycleFinder struct {
	frames []trace.Frame
	byText map[string]uint32
	byKind map[frameKind]uint32
	text   []byte
}

// cyclesOf are the parts of consecutive frames; nil where none is a cycle.
func cyclesOf(frames []trace.Frame) []part {
	if len(frames) <= minHidden {
		return nil
	}
	c := &cycleFinder{frames: frames, byText: map[string]uint32{}, byKind: map[frameKind]uint32{}}
	parts := make([]part, len(frames))
	for i := range frames {
		parts[i] = part{key: c.frameKey(i), first: uint32(i), end: uint32(i) + 1} //nolint:gosec // indices of frames
	}
	isFound := false
	for range maxLevels {
		n := len(parts)
		if parts = c.fold(parts); len(parts) == n {
			break
		}
		isFound = true
	}
	if !isFound {
		return nil
	}
	return parts
}

// frameKey is the number of the functions of a frame. The keys of a wave's frames are never
// equal, so that their lanes are shown.
func (c *cycleFinder) frameKey(i int) uint32 {
	f := &c.frames[i]
	if len(f.Lanes()) > 0 {
		return c.number(binary.LittleEndian.AppendUint64([]byte("frame "), uint64(i))) //nolint:gosec // an index
	}
	kind := frameKind{isGuess: f.FoundBy.IsGuess(), rests: f.RestsOnGuess, isSignal: f.SignalFrame}
	if len(f.Symbols) > 0 {
		kind.symbols = &f.Symbols[0]
	} else {
		kind.pc = f.PC
	}
	tails := f.TailCallers()
	key, isKnown := c.byKind[kind]
	if isKnown && len(tails) == 0 {
		return key
	}
	c.text = fmt.Appendf(c.text[:0], "%t %t %t", kind.isGuess, kind.rests, kind.isSignal)
	c.appendFunctions(f)
	for k := range tails {
		c.text = append(c.text, " left"...)
		c.appendFunctions(&tails[k])
	}
	key = c.number(c.text)
	if len(tails) == 0 {
		c.byKind[kind] = key
	}
	return key
}

// appendFunctions appends the names and places of a frame's functions to the text.
func (c *cycleFinder) appendFunctions(f *trace.Frame) {
	if f.Module != nil {
		c.text = fmt.Appendf(c.text, " %d", f.Module.ID)
	}
	if len(f.Symbols) == 0 {
		c.text = fmt.Appendf(c.text, " %#x", f.PC)
	}
	for i := range f.Symbols {
		s := &f.Symbols[i]
		c.text = fmt.Appendf(c.text, " %q %#x", s.Function, s.Start)
	}
}

// number is the number of a text.
func (c *cycleFinder) number(text []byte) uint32 {
	n, isKnown := c.byText[string(text)]
	if !isKnown {
		n = uint32(len(c.byText)) //nolint:gosec // at most one for each frame
		c.byText[string(text)] = n
	}
	return n
}

// fold makes a part of every cycle of parts, the shortest period first, and returns parts
// unchanged where there is none.
func (c *cycleFinder) fold(parts []part) []part {
	periods := make([]uint8, len(parts)) // of the cycle that begins at a part
	taken := make([]bool, len(parts))
	ends := map[int]int{}
	for period := 1; period <= min(maxPeriod, len(parts)/3); period++ {
		for i := 0; i+period < len(parts); {
			end := i
			for end+period < len(parts) && !taken[end] && !taken[end+period] && parts[end].key == parts[end+period].key {
				end++
			}
			next := max(end, i+1)
			if times := (end - i + period) / period; end > i && times > 2 {
				stop := i + times*period
				if parts[stop-period-1].end-parts[i+period].first >= minHidden {
					periods[i], ends[i] = uint8(period), stop //nolint:gosec // at most maxPeriod
					for k := i; k < stop; k++ {
						taken[k] = true
					}
					next = stop
				}
			}
			i = next
		}
	}
	if len(ends) == 0 {
		return parts
	}
	var folded []part
	for i := 0; i < len(parts); {
		if periods[i] == 0 {
			folded = append(folded, parts[i])
			i++
			continue
		}
		repetitions := parts[i:ends[i]]
		folded = append(folded, part{
			key: c.cycleKey(repetitions[:periods[i]]), first: repetitions[0].first, end: repetitions[len(repetitions)-1].end, cycle: &cycle{repetitions, int(periods[i])},
		})
		i = ends[i]
	}
	return folded
}

// cycleKey is the number of a cycle, whichever of its parts comes first.
func (c *cycleFinder) cycleKey(parts []part) uint32 {
	keys := make([]uint32, len(parts))
	for i := range parts {
		keys[i] = parts[i].key
	}
	least := slices.Clone(keys)
	for range keys {
		if keys = append(keys[1:], keys[0]); slices.Compare(keys, least) < 0 {
			copy(least, keys)
		}
	}
	c.text = append(c.text[:0], "cycle"...)
	for _, key := range least {
		c.text = binary.LittleEndian.AppendUint32(c.text, key)
	}
	return c.number(c.text)
}

// linesOf is the number of frames of a report for parts.
func linesOf(frames []trace.Frame, parts []part) int {
	return countLines(frames[parts[0].first:parts[len(parts)-1].end])
}

// linesOfEach is the number of frames of a report for each repetition of a cycle; 0 where
// they differ.
func (p *cycle) linesOfEach(frames []trace.Frame) int {
	n := linesOf(frames, p.parts[:p.period])
	for i := p.period; i < len(p.parts); i += p.period {
		if linesOf(frames, p.parts[i:i+p.period]) != n {
			return 0
		}
	}
	return n
}

// functionsOf are the functions of parts, innermost first, each as the next one names it,
// including cycles within them.
func (c *chain) functionsOf(frames []trace.Frame, parts []part) []string {
	var names []string
	for i := range parts {
		p := &parts[i]
		if p.cycle != nil {
			inner := c.functionsOf(frames, p.parts[:p.period])
			names = append(names, "("+strings.Join(inner, " < ")+" repeated)")
			continue
		}
		names = append(names, c.functionsAt(&frames[p.first])...)
	}
	if n := len(names) - maxNamed; n > 1 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", n))
	}
	return names
}

func (c *chain) functionsAt(f *trace.Frame) (names []string) {
	if len(f.Symbols) == 0 {
		names = append(names, "??")
	}
	for i := range f.Symbols {
		names = append(names, c.names.of(&f.Symbols[i]))
	}
	tails := f.TailCallers()
	for i := range tails {
		names = append(names, c.functionsAt(&tails[i])...)
	}
	return names
}
