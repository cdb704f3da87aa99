// SPDX-License-Identifier: Apache-2.0

package code

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/llvmir"
	"github.com/unwindd/unwindd/engine/internal/symbol/spirv"
	"github.com/unwindd/unwindd/engine/internal/symbol/visaasm"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// This file adds to the debug information of code from the source module that it was compiled
// from: lines of vISA assembly where it has none, and inlined calls of SPIR-V or LLVM IR where it
// has lines only.

// irSections are the sections in which a zebin has its source module, as SPIR-V or LLVM IR.
var irSections = []string{".spv", ".llvm"}

// irSection returns the first of irSections that an object has; nil: it has none.
func irSection(o *object.Object) *object.Section {
	for _, name := range irSections {
		if s := o.Section(name); s != nil {
			return s
		}
	}
	return nil
}

const (
	// visaPositions is the kind of position maps to vISA instructions.
	visaPositions = "visa"
	// maxSourceModule bounds the bytes of a source module that is read.
	maxSourceModule = 64 << 20
	// maxSourceProblems bounds the problems of a source module that are listed.
	maxSourceProblems = 8
	// maxJoinFrames bounds the frames of all instructions and calls that an index of positions
	// is made of. The largest module that was seen has a tenth.
	maxJoinFrames = 1 << 22
	// maxJoinPath bounds the calls of a chain.
	maxJoinPath = 128
	// maxJoinWork bounds the calls that are looked at for all chains of a module: a
	// few seconds.
	maxJoinWork = 1 << 29
	// maxJoinKept bounds the chains that are kept.
	maxJoinKept = 1 << 12
	// maxJoinSites bounds the sites of one position. A line of a program has a few.
	maxJoinSites = 64
)

// A sourceModule is the module that code was compiled from.
type sourceModule struct {
	assembly *visaasm.Module // nil without one
	join     *sourceJoin     // likewise
}

// sourceLines has the source module of an object, which once reads.
type sourceLines struct {
	once     sync.Once
	source   sourceModule
	hasLines atomic.Bool // source was read, and has lines for code that has none
}

// positionMaps are the maps of the plugin from addresses of the object to vISA instructions.
type positionMaps struct {
	maps      []sdk.PositionMap // by address
	functions []string          // of each of maps; "" where it is not known
}

// placePositions returns the maps of the plugin by address of the object.
func (o *Object) placePositions(list []sdk.PositionMap, functions []sdk.Function) (m positionMaps) {
	for _, p := range list {
		if p.Kind != visaPositions || len(p.PCs) == 0 {
			continue
		}
		base, ok := o.sectionBase(p.Section, "positions")
		if !ok {
			continue
		}
		p.PCs = slices.Clone(p.PCs)
		for i := range p.PCs {
			p.PCs[i] += base
		}
		m.maps = append(m.maps, p)
	}
	sort.SliceStable(m.maps, func(i, j int) bool { return m.maps[i].PCs[0] < m.maps[j].PCs[0] })
	for _, p := range m.maps {
		// A kernel and its first subroutine do not begin at one address, but a
		// kernel contains its subroutines.
		name := ""
		for i := range functions {
			if f := &functions[i]; f.Start == p.PCs[0] && name == "" {
				name = f.Name
			}
		}
		m.functions = append(m.functions, name)
	}
	return m
}

// visaIndex returns the vISA instruction of the code at an address of the object, and the kernel or
// function that counts it.
func (m *positionMaps) visaIndex(address uint64) (function string, index uint32, ok bool) {
	n := sort.Search(len(m.maps), func(i int) bool { return m.maps[i].PCs[0] > address })
	if n == 0 {
		return "", 0, false
	}
	p := &m.maps[n-1]
	i := sort.Search(len(p.PCs), func(i int) bool { return p.PCs[i] > address })
	// The last entry is where the code ends.
	if i == len(p.PCs) || p.Positions[i-1] > uint64(^uint32(0)) {
		return "", 0, false
	}
	return m.functions[n-1], uint32(p.Positions[i-1]), true
}

// hasSourceModule reports whether the target or the file has a source module.
func (o *Object) hasSourceModule() bool {
	return o.memory.sourceModule != nil || o.File != nil && o.File.IsELF() && irSection(o.File) != nil
}

// fromSource adds lines or inlined calls of the source module to the functions at an address that
// debug information and symbols gave.
func (o *Object) fromSource(frames []trace.Symbol, address uint64) []trace.Symbol {
	if !o.hasSourceModule() {
		return frames
	}
	source := o.readSourceModule()
	if source.assembly != nil && len(frames) == 1 && frames[0].Line == 0 {
		frames = o.assemblyLine(source.assembly, frames, address)
	}
	if source.join == nil || len(frames) != 1 || frames[0].Line == 0 || o.isScoped(address) {
		return frames
	}
	physical := &frames[0]
	chain, spent := source.join.chain(physical)
	if spent {
		o.Problem("source module: too many calls: inlined calls are not looked for any more")
	}
	if chain != nil {
		return chain
	}
	if physical.Source == "" {
		physical.Source = source.join.text(physical.File)
	}
	return frames
}

// isScoped reports whether debug information describes scopes at an address.
func (o *Object) isScoped(address uint64) bool {
	d := o.DWARF()
	if d == nil {
		return false
	}
	scoped, err := d.Scoped(address)
	return scoped || err != nil // where that is not known nothing is added
}

// assemblyLine sets the position of a function by the assembly.
//
// Instructions of one function may be in the code of another: instructions that a compiler adds
// at the start of a subroutine count as the kernel's last instruction. They have no line.
func (o *Object) assemblyLine(a *visaasm.Module, frames []trace.Symbol, address uint64) []trace.Symbol {
	if !o.hasOpened() { // the plugin's answer is set with it, and constant
		return frames
	}
	counted, index, ok := o.plugin.positions.visaIndex(address)
	unit := a.Unit(counted)
	if !ok || counted == "" || unit == nil {
		return frames
	}
	f := &frames[0]
	p, ok := unit.At(index)
	if !ok || p.File == "" || p.Line == 0 || !isVISA(&p, unit.Name, f.Function) && !isVISA(&p, unit.Name, f.LinkageName) {
		return frames
	}
	f.File, f.Line, f.Column, f.CompDir, f.LineByAssembly = p.File, p.Line, 0, "", true
	return frames
}

// isVISA reports whether the vISA function of a position has a name: the first one of its unit has
// the unit's, and the others have a number behind theirs.
func isVISA(p *visaasm.Position, unit, name string) bool {
	if p.Entry || name == "" {
		return p.Entry && name == unit
	}
	number, ok := strings.CutPrefix(p.Function, name+"_")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// readSourceModule reads the source module, once.
func (o *Object) readSourceModule() *sourceModule {
	l := &o.names.lines
	l.once.Do(func() {
		var problems []string
		err := object.Guard(func() error {
			problems = o.readSource(&l.source)
			return nil
		})
		if err != nil {
			problems, l.source = append(problems, err.Error()), sourceModule{}
		}
		l.hasLines.Store(l.source.assembly != nil)
		for _, p := range problems {
			o.Problem("%s", p)
		}
	})
	return &l.source
}

// readSource reads the source module of the target, and the one in the object where the target's
// has no scopes. It returns the problems.
func (o *Object) readSource(s *sourceModule) (problems []string) {
	if o.memory.sourceModule != nil {
		data, err := o.memory.sourceModule()
		if err == nil {
			problems, err = s.read("source module", data)
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if s.join != nil || o.File == nil || !o.File.IsELF() {
		return problems
	}
	section := irSection(o.File)
	if section == nil {
		return problems
	}
	name := o.File.Name() + ": " + section.Name
	data, err := section.Data()
	if err != nil {
		return append(problems, err.Error())
	}
	if !spirv.Is(name, data) && !llvmir.Is(name, data) {
		return append(problems, name+": expected SPIR-V or LLVM IR")
	}
	more, err := s.read(name, data)
	if err != nil {
		more = append(more, err.Error())
	}
	return append(problems, more...)
}

// read reads a source module in any of its formats.
func (s *sourceModule) read(name string, data []byte) (problems []string, err error) {
	if len(data) > maxSourceModule {
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", name, len(data), maxSourceModule)
	}
	var ir symbol.IR
	switch {
	case visaasm.Is(name, data):
		s.assembly, err = visaasm.Read(name, data)
		if err == nil {
			problems = s.assembly.Problems()
		}
	case spirv.Is(name, data):
		ir, err = spirv.Read(name, data)
	case llvmir.Is(name, data):
		ir, err = llvmir.Read(name, bytes.Clone(data)) // it keeps what it reads, outside of a guard
	default:
		err = fmt.Errorf("%s: expected SPIR-V, LLVM IR or vISA assembly", name)
	}
	if err != nil {
		return nil, err
	}
	if ir != nil {
		if s.join, err = newJoin(ir); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		problems = ir.Problems()
	}
	if n := len(problems); n > maxSourceProblems {
		problems = append(slices.Clone(problems[:maxSourceProblems]), fmt.Sprintf("%s: and %d more problems", name, n-maxSourceProblems))
	}
	return problems, err
}
