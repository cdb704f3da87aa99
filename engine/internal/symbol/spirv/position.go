// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// lineState is the position of the last OpLine or DebugLine. OpLine names a file by an
// OpString, DebugLine by a DebugSource; 0: unknown.
type lineState struct{ file, line, column uint32 }

// place is the source position of instructions, as far as it is known.
type place struct {
	scope, inlined uint32
	lineState
}

// step is an instruction of a function on a walk.
type step struct {
	index int
	word  uint32 // the word
	op    uint16
	place place
}

// walk is the state of a walk over a function: the next instruction, and the place before
// it.
type walk struct {
	step
	isInBlock bool // a block
}

// markEvery is the number of instructions between two stored walks, from which positions
// are looked up.
const markEvery = 256

// begin returns a walk over a function.
func (f *function) begin() walk {
	return walk{step: step{word: f.start, place: place{lineState: f.line}}}
}

// walk visits the instructions of a function from its first one on.
func (m *Module) walk(f *function, yield func(step) bool) {
	m.walkFrom(f, f.begin(), func(s step, _ walk) bool { return yield(s) })
}

// walkFrom visits the instructions of a function; yield gets each, and the walk before it.
// A place applies to the instructions after the one that sets it, up to the end of the
// block (DebugInfo, 4.7; SPIR-V, OpLine). A terminator belongs to the block that it ends.
func (m *Module) walkFrom(f *function, s walk, yield func(step, walk) bool) {
	for ; s.word < f.end; s.index++ {
		before := s
		op, end := m.instruction(s.word)
		s.op = op
		if op == opLabel || op == opFunctionEnd {
			if s.isInBlock { // the block ended with an unknown instruction
				s.place = place{}
			}
			s.isInBlock = op == opLabel
		}
		said := s.step
		if m.setsPlace(op, s.word) {
			said.place = place{}
		}
		if !yield(said, before) {
			return
		}
		switch {
		case op == opLine && end-s.word >= 4:
			s.place.lineState = lineState{m.words[s.word+1], m.words[s.word+2], m.words[s.word+3]}
		case op == opNoLine:
			s.place.lineState = lineState{}
		case op == opExtInst || op == opExtInstWithForwardRefsKHR:
			m.change(&s.place, s.word)
		case terminators[op]:
			s.place, s.isInBlock = place{}, false
		}
		s.word = end
	}
}

// setsPlace reports whether an instruction sets the place of later ones. It has no place
// itself: between two of them scope and line may not belong together.
func (m *Module) setsPlace(op uint16, word uint32) bool {
	switch op {
	case opLine, opNoLine:
		return true
	case opExtInst, opExtInstWithForwardRefsKHR:
		if r := m.recordAt(word); r != nil {
			return r.Op == DebugScope || r.Op == DebugNoScope || r.Op == DebugLine || r.Op == DebugNoLine
		}
	}
	return false
}

// change applies the record at a word to the place after it.
func (m *Module) change(p *place, word uint32) {
	r := m.recordAt(word)
	if r == nil {
		return
	}
	switch r.Op {
	case DebugScope:
		p.scope, _ = r.id("Scope")
		p.inlined, _ = r.id("InlinedAt")
	case DebugNoScope:
		p.scope, p.inlined = 0, 0
	case DebugLine:
		file, _ := r.id("Source")
		p.lineState = lineState{file, uint32(m.line(r, "LineStart")), uint32(m.line(r, "ColumnStart"))}
	case DebugNoLine:
		p.lineState = lineState{}
	}
}

// recordAt is the record at a word; nil: there is none.
func (m *Module) recordAt(word uint32) *Record {
	i, ok := slices.BinarySearchFunc(m.records, word, func(r Record, word uint32) int { return int(r.Offset) - int(word) })
	if !ok {
		return nil
	}
	return &m.records[i]
}

// Positions are the source positions of all instructions of all functions.
func (m *Module) Positions() iter.Seq[symbol.Position] {
	return func(yield func(symbol.Position) bool) {
		for i := range m.functions {
			f := &m.functions[i]
			var last place
			var frames []trace.Symbol
			var scopes []string
			more := true
			m.walk(f, func(s step) bool {
				if frames == nil || s.place != last {
					frames, scopes = m.frames(f, s.place)
					last = s.place
				}
				more = yield(symbol.Position{Function: f.name, Instruction: s.index, Offset: uint64(s.word), Frames: frames, Scopes: scopes})
				return more
			})
			if !more {
				return
			}
		}
	}
}

// Calls are the calls of functions of the module (OpFunctionCall).
func (m *Module) Calls() iter.Seq[symbol.Call] {
	return func(yield func(symbol.Call) bool) {
		byID := make(map[uint32]*function, len(m.functions))
		for i := range m.functions {
			byID[m.functions[i].id] = &m.functions[i]
		}
		for i := range m.functions {
			f, more := &m.functions[i], true
			m.walk(f, func(s step) bool {
				_, end := m.instruction(s.word)
				if s.op != opFunctionCall || end-s.word < minimal[opFunctionCall] {
					return true
				}
				callee := byID[m.words[s.word+3]]
				if callee == nil {
					return true
				}
				c := symbol.Call{Callee: callee.name, NeverInlined: callee.isDontInline}
				c.Function, c.Instruction, c.Offset = f.name, s.index, uint64(s.word)
				c.Frames, c.Scopes = m.frames(f, s.place)
				more = yield(c)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// frames are the function at a place and the functions it was inlined into.
func (m *Module) frames(f *function, p place) (frames []trace.Symbol, scopes []string) {
	first := trace.Symbol{Line: int(p.line), Column: int(p.column)}
	first.File, first.Source = m.file(p.file)
	scope, inlined := p.scope, p.inlined
	for {
		frame, id := first, ""
		if m.find(scope) != nil {
			id = idText(scope)
			m.describeFrame(&frame, f, scope)
		}
		call := m.find(inlined)
		if call != nil && call.Op != DebugInlinedAt {
			call = nil
		}
		if call == nil && frame.Function == "" {
			frame.Function, frame.LinkageName = f.name, f.name
		}
		frame.Inlined = call != nil
		frames, scopes = append(frames, frame), append(scopes, id)
		if call == nil {
			return frames, scopes
		}
		first = trace.Symbol{Line: m.line(call, "Line"), Column: m.line(call, "Column")}
		scope, _ = call.id("Scope")
		if m.find(scope) != nil {
			first.File, first.Source = m.file(m.infos[m.byID[scope]].source)
		}
		if m.infos[m.byID[inlined]].isCut {
			inlined = 0
		} else {
			inlined, _ = call.id("Inlined")
		}
	}
}

// describeFrame fills a frame with the function that a scope is in.
func (m *Module) describeFrame(frame *trace.Symbol, f *function, scope uint32) {
	info := m.infos[m.byID[scope]]
	frame.Discriminator = info.discriminator
	if info.function < 0 {
		return
	}
	function := &m.records[info.function]
	frame.Name, frame.LinkageName = m.stringOf(function, "Name"), m.stringOf(function, "LinkageName")
	if d, ok := m.described[f.id]; ok && d == info.function && frame.LinkageName == "" {
		frame.LinkageName = f.name
	}
	frame.Function = frame.Name
	if frame.LinkageName != "" && frame.LinkageName != frame.Name {
		if frame.Function = symbol.Demangle(frame.LinkageName); frame.Name == "" {
			frame.Name = frame.Function
		}
	}
	frame.StartFile, _ = m.file(m.infos[info.function].source)
	frame.StartLine = m.line(function, "Line")
}

// file is the path and the text of a file, by the ID of its DebugSource or of the OpString
// of its name.
func (m *Module) file(id uint32) (path, text string) {
	if i, ok := m.texts[id]; ok {
		return m.sources[i].Path, m.sources[i].Text
	}
	return m.strings[id], ""
}

// Find returns the position that a text names; see symbol.IR. An ID of a function names its
// first instruction.
func (m *Module) Find(text string, hex bool) (symbol.Position, error) {
	name, offset, counted := cutPosition(text)
	if !counted && !strings.HasPrefix(text, "%") {
		if word, err := parseNumber(text, hex); err == nil {
			return m.findWord(word)
		}
	}
	f := m.findFunction(name)
	switch {
	case f != nil:
		return m.findInstruction(f, offset)
	case strings.HasPrefix(text, "%"):
		id, err := strconv.ParseUint(text[1:], 10, 32)
		if err != nil {
			break
		}
		word, ok := m.defs[uint32(id)]
		if !ok {
			return symbol.Position{}, fmt.Errorf("%s is not the result of an instruction", text)
		}
		return m.findWord(uint64(word))
	}
	return symbol.Position{}, fmt.Errorf("expected FUNCTION+INSTRUCTION of a function of the module, %%ID of a result, or the offset of a word")
}

// cutPosition splits FUNCTION+INSTRUCTION. The last + counts: names may have others.
func cutPosition(text string) (name string, instruction uint64, ok bool) {
	if i := strings.LastIndexByte(text, '+'); i > 0 {
		if n, err := parseNumber(text[i+1:], false); err == nil {
			return text[:i], n, true
		}
	}
	return text, 0, false
}

// parseNumber reads a decimal number, or a hexadecimal one after 0x or where hex is true.
func parseNumber(text string, hex bool) (uint64, error) {
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		return strconv.ParseUint(digits, 16, 64)
	}
	base := 10
	if hex {
		base = 16
	}
	return strconv.ParseUint(text, base, 64)
}

// findFunction finds a function by its name, its ID, the name of its entry point, or the
// source's name where only one function has it.
func (m *Module) findFunction(name string) *function {
	if name == "" {
		return nil
	}
	if i, ok := m.byName[name]; ok {
		return &m.functions[i]
	}
	var found *function
	for i := range m.functions {
		f := &m.functions[i]
		if idText(f.id) == name {
			return f
		}
		d, ok := m.described[f.id]
		if !ok {
			continue
		}
		if r := &m.records[d]; m.stringOf(r, "Name") == name || m.stringOf(r, "LinkageName") == name {
			if found != nil {
				return nil
			}
			found = f
		}
	}
	return found
}

func (m *Module) findInstruction(f *function, index uint64) (p symbol.Position, err error) {
	if index >= uint64(f.count) {
		return p, fmt.Errorf("function %s has instructions 0 to %d", f.name, f.count-1)
	}
	return m.first(f, func(s step) bool { return uint64(s.index) >= index }), nil
}

// findWord finds the instruction that contains a word. OpFunction refers to the first
// instruction.
func (m *Module) findWord(word uint64) (p symbol.Position, err error) {
	if word >= uint64(len(m.words)) {
		return p, fmt.Errorf("word 0x%x, expected one of the %d of the module", word, len(m.words))
	}
	f := m.functionOf(uint32(word))
	if f == nil || f.count == 0 {
		return p, fmt.Errorf("word 0x%x is in no function", word)
	}
	return m.first(f, func(s step) bool {
		_, end := m.instruction(s.word)
		return uint64(end) > word
	}), nil
}

// mark stores walks of every function.
func (m *Module) mark() {
	for i := range m.functions {
		f := &m.functions[i]
		m.walkFrom(f, f.begin(), func(_ step, before walk) bool {
			if before.index%markEvery == 0 {
				f.marks = append(f.marks, before)
			}
			return true
		})
	}
}

// first is the position of the first instruction of a function for which is returns true.
// is must return true for all later ones, too.
func (m *Module) first(f *function, is func(step) bool) (p symbol.Position) {
	start := f.begin()
	if n := sort.Search(len(f.marks), func(i int) bool { return is(f.marks[i].step) }); n > 0 {
		start = f.marks[n-1]
	}
	m.walkFrom(f, start, func(s step, _ walk) bool {
		if !is(s) {
			return true
		}
		p = symbol.Position{Function: f.name, Instruction: s.index, Offset: uint64(s.word)}
		p.Frames, p.Scopes = m.frames(f, s.place)
		return false
	})
	return p
}
