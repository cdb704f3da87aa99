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

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbol/llvmir"
	"github.com/unwindd/unwindd/engine/symbol/spirv"
	"github.com/unwindd/unwindd/engine/symbol/visaasm"
	"github.com/unwindd/unwindd/sdk"
)

// This file has what the module that code was made from adds to its own debug
// information: lines of vISA assembly where that has none, and inlined calls of
// SPIR-V or LLVM IR where it has lines only.

// irSections are where a zebin keeps what it was made from, as SPIR-V or LLVM IR.
var irSections = []string{".spv", ".llvm"}

// irSection is the first of irSections that an object has; nil: it has none.
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
	// maxSourceProblems bounds the problems of a source module that are told.
	maxSourceProblems = 8
	// maxJoinFrames bounds the frames that an index of positions is made of: those
	// of all instructions and calls. The largest module that was seen has a tenth.
	maxJoinFrames = 1 << 22
	// maxJoinPath bounds the calls of a chain.
	maxJoinPath = 128
	// maxJoinWork bounds the calls that are looked at for all chains of a module: a
	// few seconds.
	maxJoinWork = 1 << 29
	// maxJoinKept bounds the chains that are kept.
	maxJoinKept = 1 << 12
	// maxJoinSites bounds the positions that one may be. A line of a program has a
	// few.
	maxJoinSites = 64
)

// A sourceModule is what a module was made from.
type sourceModule struct {
	assembly *visaasm.Module // nil without one
	join     *sourceJoin     // likewise
}

// lineSource holds what a module knows of its source module. Its parts are made
// when they are first needed.
type lineSource struct {
	once     sync.Once
	source   sourceModule
	hasLines atomic.Bool // source was read, and has lines for code that has none

	positions []sdk.PositionMap // in addresses of the module; set when it is opened
	functions []string          // of each of positions; "" where it is not known
}

// takePositions takes the maps of the plugin to vISA instructions, by address.
func (o *Object) takePositions(list []sdk.PositionMap) {
	s := &o.lines
	s.positions, s.functions = nil, nil
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
		s.positions = append(s.positions, p)
	}
	sort.SliceStable(s.positions, func(i, j int) bool { return s.positions[i].PCs[0] < s.positions[j].PCs[0] })
	for _, p := range s.positions {
		// A kernel and its first subroutine do not begin at one address, but a
		// kernel holds its subroutines.
		name := ""
		for i := range o.functions {
			if f := &o.functions[i]; f.Start == p.PCs[0] && name == "" {
				name = f.Name
			}
		}
		s.functions = append(s.functions, name)
	}
}

// visaIndex is the vISA instruction that code at an address of the module is of,
// and the kernel or function that counts it.
func (s *lineSource) visaIndex(address uint64) (function string, index uint32, ok bool) {
	n := sort.Search(len(s.positions), func(i int) bool { return s.positions[i].PCs[0] > address })
	if n == 0 {
		return "", 0, false
	}
	p := &s.positions[n-1]
	i := sort.Search(len(p.PCs), func(i int) bool { return p.PCs[i] > address })
	// The last entry is where the code ends.
	if i == len(p.PCs) || p.Positions[i-1] > uint64(^uint32(0)) {
		return "", 0, false
	}
	return s.functions[n-1], uint32(p.Positions[i-1]), true
}

// hasSourceModule says whether there is anything that the code was made from.
func (o *Object) hasSourceModule() bool {
	return o.sourceModule != nil || o.File != nil && o.File.IsELF() && irSection(o.File) != nil
}

// fromSource adds what the source module says of an address of the module's
// object to what its debug information and symbols say.
func (o *Object) fromSource(frames []symbol.Frame, address uint64) []symbol.Frame {
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
		o.mu.Lock()
		o.problem("source module: too many calls: inlined calls are not looked for any more")
		o.mu.Unlock()
	}
	if chain != nil {
		return chain
	}
	if physical.Source == "" {
		physical.Source = source.join.text(physical.File)
	}
	return frames
}

// isScoped says whether debug information describes scopes at an address.
func (o *Object) isScoped(address uint64) bool {
	d := o.DWARF()
	if d == nil {
		return false
	}
	scoped, err := d.Scoped(address)
	return scoped || err != nil // what is not known is not added to
}

// assemblyLine gives a function without a position the one that the assembly
// has.
//
// Instructions of one function may be in the code of another: what a compiler
// adds at the start of a subroutine counts as the kernel's last instruction. They
// have no line.
func (o *Object) assemblyLine(a *visaasm.Module, frames []symbol.Frame, address uint64) []symbol.Frame {
	o.mu.Lock()
	isOpen := o.isOpen // what the plugin said is set with it, and stays
	o.mu.Unlock()
	if !isOpen {
		return frames
	}
	counted, index, ok := o.lines.visaIndex(address)
	unit := a.Unit(counted)
	if !ok || counted == "" || unit == nil {
		return frames
	}
	f := &frames[0]
	at, ok := unit.At(index)
	if !ok || at.File == "" || at.Line == 0 || !isVISA(&at, unit.Name, f.Function) && !isVISA(&at, unit.Name, f.LinkageName) {
		return frames
	}
	f.File, f.Line, f.Column, f.CompDir, f.LineByAssembly = at.File, at.Line, 0, "", true
	return frames
}

// isVISA says whether a function of vISA is that of a name: the first one of its
// unit has the unit's, and the others have a number behind theirs.
func isVISA(at *visaasm.Position, unit, name string) bool {
	if at.Entry || name == "" {
		return at.Entry && name == unit
	}
	number, ok := strings.CutPrefix(at.Function, name+"_")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// readSourceModule reads what the module was made from, once.
func (o *Object) readSourceModule() *sourceModule {
	o.lines.once.Do(func() {
		var problems []string
		err := object.Guard(func() error {
			problems = o.readSource(&o.lines.source)
			return nil
		})
		if err != nil {
			problems, o.lines.source = append(problems, err.Error()), sourceModule{}
		}
		o.lines.hasLines.Store(o.lines.source.assembly != nil)
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, p := range problems {
			o.problem("%s", p)
		}
	})
	return &o.lines.source
}

// readSource reads the source module of the target, and that in the object where
// the target's is none with scopes. It returns what is wrong.
func (o *Object) readSource(s *sourceModule) (problems []string) {
	if o.sourceModule != nil {
		data, err := o.sourceModule()
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

// read reads a source module in any of its forms.
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
