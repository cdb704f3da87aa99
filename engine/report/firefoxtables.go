// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/engine/trace"
)

// firefoxTables are the tables that all threads of the file share (RawProfileSharedData). The
// viewer counts by functions; frames are places in them, and stacks a tree of frames in which
// a row names its caller by its distance in rows.
type firefoxTables struct {
	r       *Profile
	strings interned[string]
	sources interned[string]
	libs    []firefoxLib
	libOf   []int32 // by module; -1: no frame is in it
	libAt   map[firefoxLibKey]int32
	symbols interned[firefoxSymbol]
	// resources are the code objects of functions, as strings.
	resources interned[int32]
	functions []profileFunction
	number    []int32 // by function of the profile; -1: no frame is of it
	frames    []firefoxFrame
	rowOf     []int32 // by frame: its row; the rows of the calls inlined there follow. -1: none
	// nodes has for each stack the row of its innermost call; -1: none.
	nodes []int32
	count int32 // of rows of the table of stacks
	// special are rows behind the rows of nodes, and rowOfLeaf has their indices.
	special   []firefoxStack
	rowOfLeaf map[firefoxLeaf]int32
}

// interned numbers values by first appearance.
type interned[T comparable] struct {
	list   []T
	number map[T]int32
}

func (t *interned[T]) intern(v T) int32 {
	n, ok := t.number[v]
	if !ok {
		if t.number == nil {
			t.number = map[T]int32{}
		}
		n = int32(len(t.list)) //nolint:gosec // as many as there are frames
		t.number[v] = n
		t.list = append(t.list, v)
	}
	return n
}

// firefoxLibKey identifies a code object, wherever it was mapped.
type firefoxLibKey struct{ path, buildID, arch string }

// firefoxSymbol is a physical function (NativeSymbolTable).
type firefoxSymbol struct {
	lib, name int32
	address   uint64
}

// firefoxFrame is a call at a place: the physical one, or one that was inlined there
// (RawFrameTable).
type firefoxFrame struct {
	address      int64 // in the lib; -1: not known
	lib, symbol  int32 // -1: none
	function     int32
	line, column int // 0: not known
	depth        uint16
	category     uint8
	subcategory  uint8
}

// firefoxStack is a row of the table of stacks; offset is 0 where nothing called it.
type firefoxStack struct{ frame, offset int32 }

// firefoxLeaf is the stack of a wave that was sampled in a state.
type firefoxLeaf struct {
	stack uint32
	state uint8
}

// maxFirefoxRows bounds the rows of stacks, which the viewer counts by 32 bits. Each
// may have another one for every state of a wave in which it was sampled.
const maxFirefoxRows = 1 << 30

// noFrames is a synthetic function: samples without a stack do not count in the viewer.
const noFrames = "[no frames]"

// newFirefoxTables makes the tables. The error is that there are more rows than the viewer
// can count.
func (r *Profile) newFirefoxTables() (*firefoxTables, error) {
	t := &firefoxTables{
		r: r, libOf: make([]int32, len(r.p.Modules)), libAt: map[firefoxLibKey]int32{},
		number: make([]int32, len(r.functions)), rowOf: make([]int32, len(r.p.Frames)),
		nodes: make([]int32, len(r.p.Stacks)), rowOfLeaf: map[firefoxLeaf]int32{},
	}
	for _, list := range [][]int32{t.libOf, t.number, t.rowOf, t.nodes} {
		for i := range list {
			list[i] = -1
		}
	}
	rows := int64(0)
	for i, isUsed := range r.usedStacks() {
		if !isUsed {
			continue
		}
		frame := r.p.Stacks[i].Frame
		if t.rowOf[frame] < 0 {
			t.addFrame(frame)
		}
		if rows += int64(len(r.functionOf[frame])); rows > maxFirefoxRows {
			return nil, fmt.Errorf("%s: the stacks have more than %d calls, which Firefox Profiler cannot count", r.p.Path, maxFirefoxRows)
		}
		t.count = int32(rows) //nolint:gosec // checked
		t.nodes[i] = t.count - 1
	}
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; r.isRequested(s) {
			t.addLeaf(s)
		}
	}
	return t, nil
}

// lib is the number of a module's code object.
func (t *firefoxTables) lib(module int32) int32 {
	if t.libOf[module] >= 0 {
		return t.libOf[module]
	}
	m := &t.r.p.Modules[module]
	key := firefoxLibKey{m.Path, string(m.BuildID), m.Arch}
	n, ok := t.libAt[key]
	if !ok {
		n = int32(len(t.libs)) //nolint:gosec // as many as there are modules
		t.libAt[key] = n
		t.libs = append(t.libs, firefoxLibOf(m))
	}
	t.libOf[module] = n
	return n
}

// baseOf is the base of a module's addresses in the viewer: the first byte of its image.
func baseOf(m *trace.ProfileModule) uint64 {
	if m.Kernel {
		return m.Start
	}
	if m.IsMissing || len(m.Segments) == 0 {
		return 0
	}
	base := uint64(math.MaxUint64)
	for i := range m.Segments {
		base = min(base, m.Segments[i].Address)
	}
	return base
}

// addFrame adds the rows of a frame: the physical call, and those inlined there.
func (t *firefoxTables) addFrame(frame uint32) {
	f := &t.r.p.Frames[frame]
	row := firefoxFrame{address: -1, lib: -1, symbol: -1, category: firefoxUser}
	switch {
	case f.Device:
		row.category = firefoxGPU
	case f.Kernel:
		row.category = firefoxKernel
	}
	if f.Module >= 0 {
		row.lib = t.lib(f.Module)
		offset := f.ModuleOffset
		if !f.Exact && offset > 0 {
			offset-- // within the call
		}
		row.address = firefoxAddress(&t.r.p.Modules[f.Module], offset)
	}
	if n := len(f.Symbols); n > 0 && f.Symbols[n-1].HasStart && f.Module >= 0 {
		if start := firefoxAddress(&t.r.p.Modules[f.Module], f.Symbols[n-1].Start); start >= 0 {
			name := t.r.functions[t.r.functionOf[frame][n-1]].name
			row.symbol = t.symbols.intern(firefoxSymbol{row.lib, t.strings.intern(name), uint64(start)})
		}
	}
	t.rowOf[frame] = int32(len(t.frames)) //nolint:gosec // as many as there are calls
	functions := t.r.functionOf[frame]
	for i := len(functions) - 1; i >= 0; i-- {
		fn := &t.r.functions[functions[i]]
		row.function = t.function(functions[i])
		row.depth = uint16(min(len(functions)-1-i, math.MaxUint16)) //nolint:gosec // bounded
		row.line, row.column = 0, 0
		if i < len(f.Symbols) {
			s := &f.Symbols[i]
			// The viewer takes a line to be in the file that declares the function.
			if fn.file != "" && oneLine(s.File) == fn.file {
				row.line, row.column = s.Line, s.Column
			}
		}
		t.frames = append(t.frames, row)
	}
}

// firefoxAddress is an ELF virtual address relative to the module's base; -1 where it does
// not fit in 32 bits, as the viewer's addresses do.
func firefoxAddress(m *trace.ProfileModule, offset uint64) int64 {
	if base := baseOf(m); offset >= base && offset-base <= math.MaxUint32 {
		return int64(offset - base) //nolint:gosec // 32 bits
	}
	return -1
}

// function is the number of a function in the file.
func (t *firefoxTables) function(i int32) int32 {
	if t.number[i] < 0 {
		t.number[i] = t.addFunction(t.r.functions[i])
	}
	return t.number[i]
}

func (t *firefoxTables) addFunction(f profileFunction) int32 {
	if f.isGuess {
		f.name += guessMark
	}
	t.strings.intern(f.name)
	if f.module != "" {
		t.resources.intern(t.strings.intern(nameOfModule(f.module)))
	}
	if f.file != "" {
		t.sources.intern(f.file)
		t.strings.intern(f.file)
	}
	t.functions = append(t.functions, f)
	return int32(len(t.functions) - 1) //nolint:gosec // as many as there are calls
}

// addLeaf adds the stack of a sample where it differs from other samples' by the state of the
// wave, or where there is no frame.
func (t *firefoxTables) addLeaf(s *trace.ProfileSample) {
	leaf, isSpecial := t.leafOf(s)
	if !isSpecial {
		return
	}
	if _, ok := t.rowOfLeaf[leaf]; ok {
		return
	}
	index := t.count + int32(len(t.special)) //nolint:gosec // there are fewer of these than samples
	t.rowOfLeaf[leaf] = index
	if leaf.stack == 0 {
		t.special = append(t.special, firefoxStack{frame: t.addNoFrames()})
		return
	}
	node := t.r.p.Stacks[leaf.stack]
	calls := int32(len(t.r.functionOf[node.Frame])) //nolint:gosec // of one frame
	caller := t.nodes[node.Caller]
	if calls > 1 {
		caller = t.nodes[leaf.stack] - 1
	}
	row := t.frames[t.rowOf[node.Frame]+calls-1]
	row.subcategory = leaf.state
	next := firefoxStack{frame: int32(len(t.frames))} //nolint:gosec // as many as there are calls
	if caller >= 0 {
		next.offset = index - caller
	}
	t.frames = append(t.frames, row)
	t.special = append(t.special, next)
}

func (t *firefoxTables) addNoFrames() int32 {
	row := firefoxFrame{address: -1, lib: -1, symbol: -1, category: firefoxOther}
	row.function = t.addFunction(profileFunction{name: noFrames})
	t.frames = append(t.frames, row)
	return int32(len(t.frames) - 1) //nolint:gosec // as many as there are calls
}

// leafOf reports whether a sample needs a stack of its own, apart from others with the same
// frames.
func (t *firefoxTables) leafOf(s *trace.ProfileSample) (leaf firefoxLeaf, isSpecial bool) {
	leaf = firefoxLeaf{stack: s.Stack, state: s.State}
	switch {
	case s.Stack == 0:
		return firefoxLeaf{}, true
	case !t.r.p.Frames[t.r.p.Stacks[s.Stack].Frame].Device:
		return leaf, false
	}
	return leaf, leaf.state > 0
}

// stack is the row of a sample's stack.
func (t *firefoxTables) stack(s *trace.ProfileSample) int32 {
	if leaf, isSpecial := t.leafOf(s); isSpecial {
		return t.rowOfLeaf[leaf]
	}
	return t.nodes[s.Stack]
}

// leafName is the string that names the innermost call of a sample.
func (t *firefoxTables) leafName(s *trace.ProfileSample) int32 {
	if s.Stack == 0 {
		return t.strings.intern(noFrames) // addLeaf added it
	}
	functions := t.r.functionOf[t.r.p.Stacks[s.Stack].Frame]
	return t.strings.intern(t.r.functions[functions[0]].name)
}
