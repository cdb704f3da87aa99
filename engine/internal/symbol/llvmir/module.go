// SPDX-License-Identifier: Apache-2.0

// Package llvmir reads the debug metadata of textual LLVM IR: in the current spelling
// (!DISubprogram, #dbg_value and #dbg_declare, the intrinsics llvm.dbg.*), in the spelling
// of LLVM 3.7 (!MDSubprogram), and in the forms before it, in which a descriptor is a tuple
// that begins with its tag, as far as the document that introduced the spelling shows them.
//
// A Module stores the offsets of its nodes and instructions in the text, a few bytes for
// each, and reads them on demand. The text may have been cut, or edited: an unreadable part
// is a problem, and the rest is read.
package llvmir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
)

const (
	// maxProblems bounds the list of problems: a file may have one on every line.
	maxProblems = 64
	// lineChunk is how many bytes of text share a counted line.
	lineChunk = 1 << 16
)

// ErrNotLLVMIR is returned for a text without any part of a module of LLVM IR.
var ErrNotLLVMIR = errors.New("no LLVM IR: a function, a global variable or a metadata node is expected")

// ErrBitcode is returned for LLVM IR in its binary form, which is not read.
var ErrBitcode = errors.New("LLVM bitcode, expected LLVM IR as text: llvm-dis writes it, `llvm-dis FILE -o FILE.ll`")

// bitcodeMagics begin bitcode: by itself, and in a wrapper (LLVM, "Bitcode File Format",
// 0x0B17C0DE in little-endian order).
var bitcodeMagics = []string{"BC\xc0\xde", "\xde\xc0\x17\x0b"}

// IsBitcode reports whether a file is LLVM bitcode.
func IsBitcode(data []byte) bool {
	return slices.ContainsFunc(bitcodeMagics, func(magic string) bool { return bytes.HasPrefix(data, []byte(magic)) })
}

// Module is a module of LLVM IR. It may be used concurrently.
type Module struct {
	name      string
	source    []byte
	nodes     []node
	named     []node // id is not used
	order     []uint32
	functions []Function
	noInline  map[string]bool // groups of attributes that forbid inlining, "#2"
	globals   []global

	mu       sync.Mutex
	problems []string
	dropped  int

	lines      func() []uint32
	linked     func() map[string]uint64
	identified func() map[string]uint64
	byName     func() map[string]int
	bySource   func() map[string]int
	byResult   func() map[string]resultPlace

	kept   sync.Mutex
	scopes map[Ref]*scope
	calls  map[Ref]keptCall
}

// node is the definition of a metadata node.
type node struct {
	id  uint32
	def uint32 // offset of the definition: of "!12 ="
}

// global is a global variable with debug information.
type global struct {
	name uint32 // offset
	dbg  uint32 // offset of the node behind !dbg
}

// Parse reads a module. The name is for messages. data is kept, and must not change. It is
// an error when data has nothing of LLVM IR, ErrBitcode when it is the binary form.
func Parse(name string, data []byte) (*Module, error) {
	if IsBitcode(data) {
		return nil, fmt.Errorf("%s: %w", name, ErrBitcode)
	}
	if uint64(len(data)) >= math.MaxUint32 {
		return nil, fmt.Errorf("%s: %d bytes, less than 4 GiB expected", name, len(data))
	}
	m := &Module{name: name, source: data, scopes: map[Ref]*scope{}, calls: map[Ref]keptCall{}}
	m.lines = sync.OnceValue(m.countLines)
	m.linked = sync.OnceValue(m.linkFunctions)
	m.identified = sync.OnceValue(m.findIdentifiers)
	m.byName = sync.OnceValue(m.nameFunctions)
	m.bySource = sync.OnceValue(m.nameSources)
	m.byResult = sync.OnceValue(m.findResults)
	s := scanner{Module: m, lexer: lexer{data: data}}
	if !s.module() {
		return nil, fmt.Errorf("%s: %w", name, ErrNotLLVMIR)
	}
	m.index()
	return m, nil
}

// index sorts the nodes by their numbers. The first of two with one number counts.
func (m *Module) index() {
	byID := func(a, b node) int { return cmp.Compare(a.id, b.id) }
	if !slices.IsSortedFunc(m.nodes, byID) {
		slices.SortStableFunc(m.nodes, byID)
	}
	kept := m.nodes[:0]
	for i, n := range m.nodes {
		if i > 0 && n.id == kept[len(kept)-1].id {
			m.problem(int(n.def), "node !%d is defined a second time", n.id)
			continue
		}
		kept = append(kept, n)
	}
	m.nodes = kept
}

// problem records an unreadable part.
func (m *Module) problem(offset int, format string, args ...any) {
	m.mu.Lock()
	full := len(m.problems) >= maxProblems
	if full {
		m.dropped++
	}
	m.mu.Unlock()
	if full {
		return
	}
	text := m.complain(offset, format, args...).Error()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.problems, text) {
		m.problems = append(m.problems, text)
	}
}

// complain returns an error with a place in the text.
func (m *Module) complain(offset int, format string, args ...any) error {
	return fmt.Errorf("%s: line %d (offset %#x): %s", m.name, m.line(offset), offset, fmt.Sprintf(format, args...))
}

// Problems are the unreadable parts so far, at most 64 sentences, each with the file and
// the line, and how many more there are.
func (m *Module) Problems() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.problems)
	if m.dropped > 0 {
		list = append(list, fmt.Sprintf("%s: %d problems more", m.name, m.dropped))
	}
	return list
}

// countLines counts the lines before each chunk of the text.
func (m *Module) countLines() []uint32 {
	counts := make([]uint32, 0, len(m.source)/lineChunk+1)
	n := uint32(0)
	for rest := m.source; ; rest = rest[lineChunk:] {
		counts = append(counts, n)
		if len(rest) <= lineChunk {
			return counts
		}
		n += uint32(bytes.Count(rest[:lineChunk], []byte{'\n'}))
	}
}

// line is the number of the line at an offset, from 1.
func (m *Module) line(offset int) uint64 {
	offset = min(max(offset, 0), len(m.source))
	counts := m.lines()
	chunk := min(offset/lineChunk, len(counts)-1)
	return uint64(counts[chunk]) + uint64(bytes.Count(m.source[chunk*lineChunk:offset], []byte{'\n'})) + 1
}

// definition is the offset at which a node is defined; ok is false where there is no node
// with the number.
func (m *Module) definition(id uint64) (offset int, ok bool) {
	// In most modules the nodes are numbered without gaps.
	if id < uint64(len(m.nodes)) && uint64(m.nodes[id].id) == id {
		return int(m.nodes[id].def), true
	}
	if id > math.MaxUint32 {
		return 0, false
	}
	i, ok := slices.BinarySearchFunc(m.nodes, uint32(id), func(n node, id uint32) int { return cmp.Compare(n.id, id) })
	if !ok {
		return 0, false
	}
	return int(m.nodes[i].def), true
}

// Node returns the node of a number: "!12" has number 12. The error tells that there is
// none, or its fault.
func (m *Module) Node(id uint64) (Node, error) {
	offset, ok := m.definition(id)
	if !ok {
		return Node{}, fmt.Errorf("%s: node !%d is not defined", m.name, id)
	}
	return m.nodeAt(offset)
}

// Nodes are the numbered nodes of the module and the lists that have names
// (!llvm.dbg.cu), in the order of the text. An error is about one of them.
func (m *Module) Nodes() iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		for _, def := range m.order {
			if !yield(m.nodeAt(int(def))) {
				return
			}
		}
	}
}

// Functions are the functions that the module defines, in its order.
func (m *Module) Functions() []Function { return m.functions }

// Function returns the function of a name; ok is false where there is none.
func (m *Module) Function(name string) (f *Function, ok bool) {
	i, ok := m.byName()[name]
	if !ok {
		return nil, false
	}
	return &m.functions[i], true
}

func (m *Module) nameFunctions() map[string]int {
	names := make(map[string]int, len(m.functions))
	for i := range m.functions {
		name := m.functions[i].Name()
		if _, ok := names[name]; !ok {
			names[name] = i
		}
	}
	return names
}

// severalFunctions is the index for a name that more than one function has.
const severalFunctions = -1

// nameSources are the functions by their names in the source, with and without scopes.
func (m *Module) nameSources() map[string]int {
	names := map[string]int{}
	for i := range m.functions {
		s := m.scope(m.subprogram(&m.functions[i]))
		if s.err != nil {
			continue
		}
		for _, name := range []string{s.frame.Name, s.frame.Function} {
			if other, ok := names[name]; ok && other != i {
				names[name] = severalFunctions
			} else {
				names[name] = i
			}
		}
	}
	return names
}

// Is reports whether a file is LLVM IR, by the suffix of its name or by its beginning. It
// may be bitcode, for which Parse tells how to make text.
func Is(path string, data []byte) bool {
	if strings.HasSuffix(path, ".ll") || IsBitcode(data) {
		return true
	}
	l := lexer{data: data[:min(len(data), 4096)]}
	t := l.next()
	switch t.kind {
	case wordToken:
		switch word := string(l.text(t)); word {
		case "source_filename":
			return l.is(l.next(), '=')
		case "target":
			word = string(l.text(l.next()))
			return word == "datalayout" || word == "triple"
		case "define", "declare":
			return true
		}
	case nodeToken, nameToken, localToken, globalToken:
		return l.is(l.next(), '=')
	case endToken: // only comments
	}
	return bytes.HasPrefix(data, []byte("; ModuleID = "))
}
