// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// NVIDIA's compilers describe inlined calls in the line table. Two extended opcodes set registers
// that every row has and that stay until they are set again, or until the sequence ends. Both have
// unsigned LEB128 operands.
const (
	lneInlinedCall     = 0x90 // a context, and a name
	lneSetFunctionName = 0x91 // a name
)

// inlining are the registers of a row that describe an inlined call.
type inlining struct {
	// context is the number of the row that has the call, counted from 1 in the sequence;
	// 0: the row is not of inlined code.
	context uint32
	// name is the linkage name of the function that was inlined: an offset in .debug_str from
	// nameBase on. Without a context it means nothing.
	name uint32
}

// inlinedNames are the names of inlined calls in a table.
type inlinedNames struct {
	isUsed bool
	last   uint32 // the offset of the last one from nameBase on
	// isUnknown is set where linkers joined tables without correcting where names are.
	isUnknown bool
}

func (n *inlinedNames) add(i *inlining) {
	if i.context != 0 {
		n.isUsed, n.last = true, max(n.last, i.name)
	}
}

// maxInlinedLines bounds the rows from one of inlined code to the row of the function that
// has the code.
const maxInlinedLines = 256

// nameBaseSize is the size of the number between the files and the end of the header.
const nameBaseSize = 4

// readNameBase reads the offset that names of inlined calls count from, where the header has
// nothing else behind the files.
func (h *lineHeader) readNameBase(c *cursor) {
	if c.left() == nameBaseSize {
		h.nameBase = c.uint(nameBaseSize)
	}
}

// setInlinedCall runs lneInlinedCall. An opcode of that number with other operands is another
// vendor's.
func (m *lineMachine) setInlinedCall(c *cursor) {
	context, name := c.uleb(), c.uleb()
	if !c.hasMore() && !c.failed && context < 1<<32 && name < 1<<32 {
		m.inlining = inlining{uint32(context), uint32(name)}
	}
	c.failed = false
}

// setFunctionName runs lneSetFunctionName.
func (m *lineMachine) setFunctionName(c *cursor) {
	if name := c.uleb(); !c.hasMore() && !c.failed && name < 1<<32 {
		m.name = uint32(name)
	}
	c.failed = false
}

// keepOrder notes the order of the program of rows that are about to be sorted, where a row needs
// another by its number.
func (s *sequence) keepOrder() {
	needed := false
	for i := range s.sorted {
		needed = needed || s.sorted[i].context != 0
	}
	if !needed {
		return
	}
	places := make([]uint32, len(s.sorted))
	for i := range places {
		places[i] = uint32(i)
	}
	slices.SortStableFunc(places, func(a, b uint32) int { return cmp.Compare(s.sorted[a].address, s.sorted[b].address) })
	s.order = make([]uint32, len(places))
	for sorted, number := range places {
		s.order[number] = uint32(sorted)
	}
}

// numbered returns a row of a sequence by its number, counted from 1 in the order of the program.
func (t *lineTable) numbered(s *sequence, number uint32) (r row, ok bool) {
	if number == 0 || number > s.rows {
		return row{}, false
	}
	index := number - 1
	if s.count == 0 {
		if uint64(index) >= uint64(len(s.order)) {
			return row{}, false
		}
		return s.sorted[s.order[index]], true
	}
	m := t.machineAt(&t.checkpoints[s.first+index/checkpointRows])
	for range index % checkpointRows {
		if event, err := m.step(); err != nil || event != lineRow {
			return row{}, false
		}
	}
	return m.row, true
}

// lineChain turns the last frame, which has the position of a place, into the inlined calls that
// the rows of the line table name, and appends what holds each of them. The last one is the
// function that has the code, and gets no name here. Of a chain that cannot be followed to its end
// the first function alone is kept; the position of the last is then unknown.
func (r *Reader) lineChain(dst []trace.Symbol, p *linePlace, style *frameStyle) []trace.Symbol {
	if p.table == nil || p.context == 0 {
		return dst
	}
	before, at := len(dst), p.row
	for range maxInlinedLines {
		if at.context == 0 {
			return dst
		}
		inner := &dst[len(dst)-1]
		inner.Inlined = true
		style.give(r.inlinedName(p.table, at.name), inner)
		site, ok := p.table.numbered(p.sequence, at.context)
		if !ok {
			return r.brokenChain(dst[:before], p, "row %d is the call of row at %#x, the sequence has %d rows", at.context, at.address, p.sequence.rows)
		}
		outer := trace.Symbol{}
		r.giveRow(&outer, p.unit, p.table, &site)
		dst, at = append(dst, outer), site
	}
	return r.brokenChain(dst[:before], p, "the calls of row at %#x do not end within %d", p.address, maxInlinedLines)
}

// brokenChain notes why a chain has no end, and appends a function without a position.
func (r *Reader) brokenChain(dst []trace.Symbol, p *linePlace, format string, args ...any) []trace.Symbol {
	r.problem(p.table.wrong("inlined calls: %s", fmt.Sprintf(format, args...)).Error())
	return append(dst, trace.Symbol{})
}

// inlinedName is the name of a function that was inlined. One that cannot be read becomes a
// problem.
func (r *Reader) inlinedName(t *lineTable, number uint32) *functionName {
	f, offset := t.file, t.nameBase+uint64(number)
	if t.names.isUnknown {
		return &functionName{}
	}
	text, err := stringAt(".debug_str"+f.suffix, f.str, f.rest.str, offset)
	if err == nil && offset > 0 && f.str[offset-1] != 0 {
		err = bad(".debug_str"+f.suffix, offset, "the beginning of a string is expected")
	}
	if err != nil {
		r.problem(t.wrong("name of an inlined call: %v", err).Error())
		return &functionName{}
	}
	name := &functionName{linkage: symbol.StripVersion(copied(text))}
	if !symbol.IsMangled(name.linkage) {
		name.readable, name.linkage = name.linkage, ""
	}
	return name
}
