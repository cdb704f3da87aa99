// SPDX-License-Identifier: Apache-2.0

// Package visaasm reads the source positions of instructions in vISA assembly: the FILE and
// LOC lines of the text that Intel's compiler writes of a kernel, or of a function that is
// called by the stack (a .visaasm file).
//
// Every label, every FILE and LOC and every instruction of a kernel has an index,
// counted from 0 over all of its functions. A debug stream maps code to them.
package visaasm

import (
	"bytes"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxProblems bounds the list of problems.
	maxProblems = 100
	// maxPath bounds the path of a file, and a name, in bytes.
	maxPath = 1 << 16
)

// Module has the contents of a text: one or more kernels and functions. It may be used
// concurrently.
type Module struct {
	units    []Unit
	problems []string
}

// Unit is a kernel, or a function that is called by the stack.
type Unit struct {
	Name string // as in its debug stream
	// Len is one more than the last index.
	Len uint32

	places []place
	failed bool
}

// place is the position of the instructions from an index up to the index of the next
// place.
type place struct {
	index uint32
	Position
}

// Position is the source position of a vISA instruction.
type Position struct {
	Function string // of the vISA, such as "fold_4"
	// Entry is set where Function is the first one of its unit, not one that is called
	// inside it.
	Entry bool
	File  string // "": unknown
	Line  int    // 0: unknown
}

// Is reports whether data begins as vISA assembly does, with its version.
func Is(_ string, data []byte) bool {
	for len(data) > 0 {
		var line []byte
		line, data = cutLine(data)
		if len(line) == 0 || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		word, rest, _ := bytes.Cut(line, []byte(" "))
		return string(word) == ".version" && len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9'
	}
	return false
}

// cutLine returns the first line of a text without blanks around it, and the rest.
func cutLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte("\n"))
	return bytes.TrimSpace(line), rest
}

// reader reads a text.
type reader struct {
	name    string
	module  *Module
	unit    *Unit // nil before the first one
	number  int   // of the current line
	next    uint64
	now     Position
	isKnown bool // the place before this line is still valid
}

// Read reads a text; name is its name in problems. A unit with a fault has no positions,
// and there is a problem; it is an error when data does not begin with the version of an
// assembly. The Module keeps nothing of data.
func Read(name string, data []byte) (*Module, error) {
	if !Is(name, data) {
		return nil, fmt.Errorf("%s: line 1: expected .version of vISA assembly", name)
	}
	r := &reader{name: name, module: &Module{}}
	for len(data) > 0 {
		var line []byte
		line, data = cutLine(data)
		r.number++
		r.line(line)
	}
	r.end()
	return r.module, nil
}

// Problems are the faults of the text, each with its line.
func (m *Module) Problems() []string { return m.problems }

// Units are the units of the text, in its order.
func (m *Module) Units() []Unit { return m.units }

// Unit finds the one unit with a name; nil: there is none, or several.
func (m *Module) Unit(name string) (found *Unit) {
	for i := range m.units {
		if u := &m.units[i]; u.Name == name {
			if found != nil {
				return nil
			}
			found = u
		}
	}
	return found
}

// At returns the position of an instruction by its index; false where there is none.
func (u *Unit) At(index uint32) (Position, bool) {
	if index >= u.Len {
		return Position{}, false
	}
	i := sort.Search(len(u.places), func(i int) bool { return u.places[i].index > index })
	if i == 0 {
		return Position{}, false
	}
	return u.places[i-1].Position, true
}

// fail records a fault of the unit, which then has no positions.
func (r *reader) fail(format string, args ...any) {
	if r.unit != nil {
		r.unit.failed = true
	}
	if len(r.module.problems) < maxProblems {
		r.module.problems = append(r.module.problems, fmt.Sprintf("%s: line %d: ", r.name, r.number)+fmt.Sprintf(format, args...))
	}
}

// begin begins a unit.
func (r *reader) begin() {
	r.end()
	r.unit, r.next, r.now, r.isKnown = &Unit{}, 0, Position{}, false
}

// end ends the unit.
func (r *reader) end() {
	if r.unit == nil {
		return
	}
	if r.unit.failed {
		r.unit.places, r.next = nil, 0
	}
	r.unit.Len = uint32(min(r.next, math.MaxUint32))
	r.module.units = append(r.module.units, *r.unit)
	r.unit = nil
}

// line reads one line.
func (r *reader) line(line []byte) {
	switch {
	case len(line) == 0, bytes.HasPrefix(line, []byte("//")):
	case line[0] == '.':
		r.directive(line)
	case r.unit == nil || r.unit.failed:
	case r.now.Function == "":
		r.fail("an instruction before the first .function")
	default:
		r.instruction(line)
	}
}

// directive reads a line that is no instruction.
func (r *reader) directive(line []byte) {
	word, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(word) {
	case ".version":
		r.begin()
	case ".kernel", ".global_function":
		name, ok := quoted(rest)
		if !ok || r.unit.Name != "" {
			r.fail("%s: expected one name of the unit, in quotes", word)
			return
		}
		r.unit.Name = name
	case ".function":
		name, ok := quoted(rest)
		if !ok || name == "" {
			r.fail("%s: expected a name in quotes", word)
			return
		}
		r.now = Position{Function: name, Entry: r.now.Function == ""}
		r.isKnown = false
	}
}

// quoted reads a text in quotes at the beginning of text.
func quoted(text []byte) (string, bool) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '"' {
		return "", false
	}
	end := bytes.LastIndexByte(text, '"')
	if end < 1 || end > maxPath || !utf8.Valid(text[:end]) {
		return "", false
	}
	return string(text[1:end]), true
}

// instruction reads a line that has an index.
func (r *reader) instruction(line []byte) {
	index := r.next
	if n, ok := numbered(line); ok {
		// The compiler numbers instructions that become code. It may count more than the
		// text has, but not fewer.
		if uint64(n) < r.next {
			r.fail("instruction %d, expected at least %d", n, r.next)
			return
		}
		index = uint64(n)
	}
	if index >= math.MaxUint32 {
		r.fail("index %d, expected at most %d", index, uint32(math.MaxUint32))
		return
	}
	r.next = index + 1
	word, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(word) {
	case "FILE":
		file, ok := quoted(rest)
		if !ok {
			r.fail("FILE: expected a path in quotes of at most %d bytes", maxPath)
			return
		}
		if file != r.now.File {
			r.now.File, r.now.Line, r.isKnown = file, 0, false
		}
	case "LOC":
		text, _, _ := strings.Cut(strings.TrimSpace(string(rest[:min(len(rest), 32)])), " ")
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			r.fail("LOC %.32q, expected the number of a line", text)
			return
		}
		if int(n) != r.now.Line {
			r.now.Line, r.isKnown = int(n), false
		}
	default:
		if !r.isKnown {
			r.unit.places, r.isKnown = append(r.unit.places, place{uint32(index), r.now}), true
		}
	}
}

// numbered is the index in the comment behind an instruction.
func numbered(line []byte) (uint32, bool) {
	i := bytes.LastIndex(line, []byte("/// $"))
	if i < 0 {
		return 0, false
	}
	text := line[i+len("/// $"):]
	n, err := strconv.ParseUint(string(text[:min(len(text), 16)]), 10, 32)
	return uint32(n), err == nil
}
