// SPDX-License-Identifier: Apache-2.0

// Package spirv reads the debug information of SPIR-V modules: the source position of every
// instruction, and the variables, types, macros and source files.
//
// It reads the extended instruction sets "DebugInfo" (cited by its sections),
// "SPIRV.debug", "OpenCL.DebugInfo.100" and "NonSemantic.Shader.DebugInfo", its versions
// 100, 101 and 200, which differ by rows of tables, and the core instructions OpLine,
// OpNoLine, OpSource, OpString and OpName. An unknown version is read as a known one. An
// unreadable part is a problem with its word offset; the rest is read.
package spirv

import (
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

const (
	magic       = 0x07230203
	headerWords = 5
	// maxProblems bounds the list of problems.
	maxProblems = 1000
	// maxChain bounds the nesting of scopes, inlined calls, and types.
	maxChain = 256
	// maxQuoted bounds a quotation in a problem, in bytes.
	maxQuoted = 80
)

// Module is a SPIR-V module. It may be used concurrently.
type Module struct {
	name  string
	words []uint32
	bound uint32

	defs      map[uint32]uint32 // the word of the instruction of each result
	strings   map[uint32]string // OpString
	sets      map[uint32]*Set   // OpExtInstImport
	records   []Record
	infos     []scopeInfo    // of the records
	byID      map[uint32]int // records
	functions []function
	byName    map[string]int // functions
	described map[uint32]int // the DebugFunction of an OpFunction, a record
	sources   []symbol.SourceFile
	texts     map[uint32]int // sources, by the ID of a DebugSource or of a file's OpString
	problems  []string
	more      int

	names, linkage, entries map[uint32]string // of functions, while reading
}

// function is an OpFunction and its data.
type function struct {
	id           uint32
	name         string
	word         uint32 // the word of OpFunction
	start, end   uint32 // the words of its instructions
	count        int    // of its instructions
	line         lineState
	marks        []walk
	isDontInline bool // from its Function Control
}

// Is reports whether data begins as a SPIR-V module does, in either byte order.
func Is(_ string, data []byte) bool {
	return len(data) >= 4 && (binary.LittleEndian.Uint32(data) == magic || binary.BigEndian.Uint32(data) == magic)
}

// Read reads a module; name is its name in problems. It is an error when data does not
// begin with a module's header. The Module keeps nothing of data.
func Read(name string, data []byte) (*Module, error) {
	if !Is(name, data) {
		return nil, fmt.Errorf("%s: word 0: expected the magic number of SPIR-V, 0x%08x in either byte order", name, magic)
	}
	if len(data) < 4*headerWords {
		return nil, fmt.Errorf("%s: header of %d bytes, expected %d", name, len(data), 4*headerWords)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint32(data) != magic {
		order = binary.BigEndian
	}
	m := &Module{
		name: name, words: make([]uint32, len(data)/4),
		defs: map[uint32]uint32{}, strings: map[uint32]string{}, sets: map[uint32]*Set{}, byID: map[uint32]int{},
		byName: map[string]int{}, described: map[uint32]int{}, texts: map[uint32]int{},
		names: map[uint32]string{}, linkage: map[uint32]string{}, entries: map[uint32]string{},
	}
	for i := range m.words {
		m.words[i] = order.Uint32(data[4*i:])
	}
	if n := len(data) % 4; n != 0 {
		m.problem(uint32(len(m.words)), "%d bytes behind the last word, expected none", n)
	}
	m.bound = m.words[3]
	m.scan()
	m.finishFunctions()
	m.checkRecords()
	m.readSources()
	m.resolveScopes()
	m.mark()
	m.names, m.linkage, m.entries = nil, nil, nil
	return m, nil
}

// problem records a fault at a word.
func (m *Module) problem(word uint32, format string, args ...any) {
	if len(m.problems) == maxProblems {
		m.more++
		return
	}
	m.problems = append(m.problems, fmt.Sprintf("%s: word 0x%x: ", m.name, word)+fmt.Sprintf(format, args...))
}

// Problems are the unreadable parts, each with its place.
func (m *Module) Problems() []string {
	if m.more == 0 {
		return m.problems
	}
	return append(m.problems[:len(m.problems):len(m.problems)], fmt.Sprintf("%s: and %d more problems", m.name, m.more))
}

// Format is "spirv".
func (m *Module) Format() string { return "spirv" }

// instruction returns the opcode of the instruction at a word, and the word behind it; the
// module was scanned up to there.
func (m *Module) instruction(word uint32) (op uint16, end uint32) {
	return uint16(m.words[word]), word + m.words[word]>>16
}

// text reads a string of a literal operand, UTF-8 that a zero ends (SPIR-V, 2.2.1), and
// returns the word behind it.
func (m *Module) text(word, end uint32) (s string, next uint32, ok bool) {
	var b strings.Builder
	for ; word < end; word++ {
		for w, i := m.words[word], 0; i < 4; w, i = w>>8, i+1 {
			if byte(w) == 0 {
				s = b.String()
				if !utf8.ValidString(s) {
					s = strings.ToValidUTF8(s, "\uFFFD")
				}
				return s, word + 1, true
			}
			b.WriteByte(byte(w))
		}
	}
	return b.String(), end, false
}

// literal is text, except that a missing end is a problem.
func (m *Module) literal(word, end uint32, what string) string {
	s, _, ok := m.text(word, end)
	if !ok {
		m.problem(word, "%s: string without an end, expected one within the instruction", what)
	}
	return s
}

// isValid reports whether an ID is within the bound of the header.
func (m *Module) isValid(id uint32) bool { return id != 0 && id < m.bound }

// scan reads every instruction once.
func (m *Module) scan() {
	s := scanner{Module: m}
	end := uint32(len(m.words))
	for word := uint32(headerWords); word < end; {
		op, n := uint16(m.words[word]), m.words[word]>>16
		switch {
		case n == 0:
			m.problem(word, "instruction %d of length 0, expected 1 or more words", op)
		case n > end-word:
			m.problem(word, "instruction %d of %d words, expected at most the %d that are left", op, n, end-word)
		default:
			s.instruction(op, word, word+n)
			word += n
			continue
		}
		end = word
	}
	s.endFunction(end)
}

// minimal is the least number of words of the instructions that are read by index.
var minimal = map[uint16]uint32{
	opSourceContinued: 2, opSource: 3, opName: 3, opString: 3, opLine: 4, opExtInstImport: 3, opExtInst: 5,
	opExtInstWithForwardRefsKHR: 5, opEntryPoint: 4, opTypeInt: 4, opConstant: 4, opFunction: 5, opFunctionCall: 4, opVariable: 4, opDecorate: 3,
	opLabel: 2, opBranch: 2, opBranchConditional: 4, opSwitch: 3,
}

// scanner is the state of a scan.
type scanner struct {
	*Module
	isInFunction bool // a function
	line         lineState
}

func (s *scanner) instruction(op uint16, word, end uint32) {
	m, w := s.Module, s.words[word:end]
	if need := minimal[op]; uint32(len(w)) < need {
		m.problem(word, "instruction %d of %d words, expected at least %d", op, len(w), need)
		// Its words are not read; the instruction itself still counts.
		op = 0
	}
	if place := resultAt(op); place != 0 && place < len(w) {
		m.define(w[place], word)
	}
	switch op {
	case opName:
		if name := m.literal(word+2, end, "OpName"); name != "" {
			m.names[w[1]] = name
		}
	case opString:
		if _, ok := m.strings[w[1]]; !ok && m.isValid(w[1]) {
			m.strings[w[1]] = m.literal(word+2, end, "OpString")
		}
	case opEntryPoint:
		m.entries[w[2]] = m.literal(word+3, end, "OpEntryPoint")
	case opDecorate:
		if w[2] == decorationLinkageAttributes {
			m.linkage[w[1]] = m.literal(word+3, end, "OpDecorate LinkageAttributes")
		}
	case opExtInstImport:
		m.importSet(w[1], m.literal(word+2, end, "OpExtInstImport"), word)
	case opExtInst, opExtInstWithForwardRefsKHR:
		if set := m.sets[w[3]]; set != nil {
			m.record(set, word, end)
		}
	case opLine:
		s.line = lineState{w[1], w[2], w[3]}
	case opNoLine:
		s.line = lineState{}
	case opFunction:
		s.endFunction(word)
		m.functions = append(m.functions, function{id: w[2], word: word, start: end, line: s.line, isDontInline: w[3]&controlDontInline != 0})
		s.isInFunction = true
		return
	case opFunctionEnd:
		if !s.isInFunction {
			m.problem(word, "OpFunctionEnd outside of a function")
			break
		}
		f := &m.functions[len(m.functions)-1]
		f.end, s.isInFunction, s.line = end, false, lineState{}
		f.count++
		return
	}
	if s.isInFunction {
		m.functions[len(m.functions)-1].count++
	}
}

// importSet records a set of debug information. An unknown one is a problem: its records
// are read as another version's, or not at all.
func (m *Module) importSet(id uint32, name string, word uint32) {
	set := setByName(name)
	switch {
	case set == nil && strings.Contains(name, "DebugInfo"):
		m.problem(word, "the set %q is not known, its debug information is not read; expected %s", shorten(name), setNames())
	case set != nil && set.ReadAs != "":
		m.problem(word, "the set %q is of a version that is not known, and read as %s", shorten(name), set.ReadAs)
	}
	if set != nil && m.isValid(id) {
		m.sets[id] = set
	}
}

// shorten cuts a quotation from a module.
func shorten(text string) string {
	if len(text) > maxQuoted {
		return strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return text
}

// endFunction ends a function that has no OpFunctionEnd.
func (s *scanner) endFunction(word uint32) {
	if s.isInFunction {
		f := &s.functions[len(s.functions)-1]
		f.end, s.isInFunction = word, false
		s.problem(word, "end of the function at word 0x%x, expected OpFunctionEnd before", f.word)
	}
}

// define records the instruction of a result.
func (m *Module) define(id, word uint32) {
	if !m.isValid(id) {
		m.problem(word, "result %%%d, expected an ID from 1 to the bound of %d", id, m.bound)
		return
	}
	if other, ok := m.defs[id]; ok {
		m.problem(word, "result %%%d, which is defined at word 0x%x too", id, other)
		return
	}
	m.defs[id] = word
}

// finishFunctions gives every function a distinct name: the name of its symbol, of its
// OpName, of its entry point, or its ID.
func (m *Module) finishFunctions() {
	taken := func(i int, name string) bool {
		if _, ok := m.byName[name]; ok || name == "" {
			return false
		}
		m.functions[i].name, m.byName[name] = name, i
		return true
	}
	for _, names := range []map[uint32]string{m.linkage, m.names, m.entries} {
		for i := range m.functions {
			if f := &m.functions[i]; f.name == "" {
				taken(i, names[f.id])
			}
		}
	}
	for i := range m.functions {
		if f := &m.functions[i]; f.name == "" {
			f.name = idText(f.id)
		}
	}
}

// functionOf finds the function that contains a word, OpFunction included; nil: there is
// none.
func (m *Module) functionOf(word uint32) *function {
	i := sort.Search(len(m.functions), func(i int) bool { return m.functions[i].end > word })
	if i < len(m.functions) && m.functions[i].word <= word {
		return &m.functions[i]
	}
	return nil
}

func idText(id uint32) string { return fmt.Sprintf("%%%d", id) }

// constant is the number of an OpConstant of an integer type.
func (m *Module) constant(id uint32) (v uint64, signed, ok bool) {
	word, ok := m.defs[id]
	if !ok {
		return 0, false, false
	}
	op, end := m.instruction(word)
	if op != opConstant {
		return 0, false, false
	}
	typeAt, ok := m.defs[m.words[word+1]]
	if !ok || uint16(m.words[typeAt]) != opTypeInt {
		return 0, false, false
	}
	width, signed := m.words[typeAt+2], m.words[typeAt+3] == 1
	switch v = uint64(m.words[word+3]); {
	case width <= 32:
		if signed {
			v = uint64(int64(int32(m.words[word+3])))
		}
	case width <= 64 && end-word >= 5:
		v |= uint64(m.words[word+4]) << 32
	default:
		return 0, false, false
	}
	return v, signed, true
}

// isVoid reports whether an ID is an OpTypeVoid.
func (m *Module) isVoid(id uint32) bool {
	word, ok := m.defs[id]
	return ok && uint16(m.words[word]) == opTypeVoid
}
