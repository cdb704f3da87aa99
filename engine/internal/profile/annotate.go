// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/selection"
	"github.com/unwindd/unwindd/engine/internal/source"
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxAnnotatedCode bounds the code of a block of a function, in bytes.
	maxAnnotatedCode = 1 << 20
	// maxAnnotatedInstructions bounds the instructions of a function.
	maxAnnotatedInstructions = 1 << 17
	// maxInlinedInto bounds the functions that are listed for an inlined one.
	maxInlinedInto = 8
)

// errNoNames is returned where functions cannot be found for want of symbols.
var errNoNames = errors.New("functions are not looked for by name: no symbols were asked for")

// annotate makes the annotations of named functions, while the recording is open. They are in
// the order of the names, and of several functions with one name the one with the most samples
// comes first.
func (b *profileBuilder) annotate(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if b.recording.maker.Shared.Options().NoSymbols {
		return errNoNames
	}
	a := &annotator{profileBuilder: b, sources: b.recording.maker.sources(b.out.Path), samples: b.samplesOfFrames()}
	all := a.functions()
	done := map[selection.FunctionName]bool{}
	for _, name := range names {
		wanted := map[selection.FunctionName]bool{}
		found := selection.FindFunctions(all, name)
		if len(found) == 0 {
			return selection.UnknownFunction(b.out.Path, all, name)
		}
		for _, f := range found {
			wanted[f] = !done[f]
			done[f] = true
		}
		list := a.find(wanted)
		for _, f := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			a.fill(ctx, f)
			b.out.Annotations = append(b.out.Annotations, f.ProfileAnnotation)
		}
	}
	if program := b.recording.maker.Disassembler; program != nil {
		b.recording.addProblems(program.Problems())
	}
	return nil
}

// sources returns a finder of source files for a recording at a path.
func (k *Maker) sources(path string) *source.Files {
	finder := k.Finder(path)
	return source.New(&finder)
}

// samplesOfFrames returns how many samples have each frame as the innermost.
func (b *profileBuilder) samplesOfFrames() []uint64 {
	counts := make([]uint64, len(b.out.Frames))
	for i := range b.out.Samples {
		if stack := b.out.Samples[i].Stack; stack != 0 {
			counts[b.out.Stacks[stack].Frame]++
		}
	}
	return counts
}

// annotator makes annotations.
type annotator struct {
	*profileBuilder
	sources *source.Files
	samples []uint64 // by frame: the samples that have it as the innermost
}

// functions returns the functions of all frames, the most sampled first.
func (a *annotator) functions() []selection.FunctionName {
	counts := map[selection.FunctionName]uint64{}
	var list []selection.FunctionName
	for i := range a.out.Frames {
		symbols := a.out.Frames[i].Symbols
		for j := range symbols {
			name := selection.NameOf(&symbols[j])
			if _, ok := counts[name]; !ok {
				list = append(list, name)
			}
			counts[name] += a.samples[i]
		}
	}
	slices.SortStableFunc(list, func(x, y selection.FunctionName) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x.Function, y.Function))
	})
	return list
}

// annotated is a function while it is annotated.
type annotated struct {
	trace.ProfileAnnotation
	module  *code.Module // nil: of no code object
	name    selection.FunctionName
	samples uint64
	frames  []annotatedFrame
	starts  []uint64 // of Code, as addresses of the module's code
	ends    []uint64
	// ownLines are the function's own lines at each of Code.
	ownLines []lineKey
	// symbols are the function's own frames, by line; its source is found by them.
	symbols map[lineKey]*trace.Symbol
}

// annotatedFrame is a frame in the function, with the index of the function's symbol.
type annotatedFrame struct {
	frame, depth int
	kernel       int32 // as in AnnotatedPlace
}

type lineKey struct {
	file string
	line int
}

// functionKey distinguishes functions of one name.
type functionKey struct {
	name   selection.FunctionName
	module *code.Module
	index  int32 // of Modules, where there is no module
}

// find finds the frames of functions.
func (a *annotator) find(wanted map[selection.FunctionName]bool) (list []*annotated) {
	index := map[functionKey]*annotated{}
	add := func(frame int, s *trace.Symbol) *annotated {
		f := &a.out.Frames[frame]
		key := functionKey{selection.NameOf(s), a.places[frame].module, -1}
		if key.module == nil {
			key.index = f.Module
		}
		g := index[key]
		if g == nil {
			g = &annotated{module: key.module, name: key.name, symbols: map[lineKey]*trace.Symbol{}, ProfileAnnotation: trace.ProfileAnnotation{
				Function: s.Function, LinkageName: s.LinkageName, Module: f.Module, Kernel: f.Kernel, Device: f.Device,
			}}
			index[key] = g
			list = append(list, g)
		}
		return g
	}
	for i := range a.out.Frames {
		symbols := a.out.Frames[i].Symbols
		level := slices.IndexFunc(symbols, func(s trace.Symbol) bool { return wanted[selection.NameOf(&s)] })
		if level >= 0 {
			g := add(i, &symbols[level])
			g.frames = append(g.frames, annotatedFrame{i, level, -1})
			g.samples += a.samples[i]
		}
	}
	a.findRecorded(wanted, add)
	slices.SortStableFunc(list, func(x, y *annotated) int { return cmp.Compare(y.samples, x.samples) })
	return list
}

// findRecorded finds frames of kernels whose code object was not found: their file of samples
// has the instruction, and the dispatched kernel is the frame below.
func (a *annotator) findRecorded(wanted map[selection.FunctionName]bool, add func(int, *trace.Symbol) *annotated) {
	type pair struct{ frame, below uint32 }
	seen := map[pair]bool{}
	for i := range a.out.Samples {
		stack := &a.out.Stacks[a.out.Samples[i].Stack]
		f := &a.out.Frames[stack.Frame]
		if a.out.Samples[i].Stack == 0 || stack.Caller == 0 || f.NamedBy == "" || !f.Device || f.Dispatched >= 0 {
			continue
		}
		p := pair{stack.Frame, a.out.Stacks[stack.Caller].Frame}
		if seen[p] {
			continue
		}
		seen[p] = true
		below := &a.out.Frames[p.below]
		if n := len(below.Symbols); n > 0 && below.Device && below.Dispatched >= 0 && wanted[selection.NameOf(&below.Symbols[n-1])] {
			g := add(int(p.below), &below.Symbols[n-1])
			g.frames = append(g.frames, annotatedFrame{int(p.frame), len(f.Symbols) - 1, below.Dispatched})
			g.samples += a.samples[p.frame]
		}
	}
}

// fill finds the instructions and lines of a function, and the places of frames among them.
func (a *annotator) fill(ctx context.Context, g *annotated) {
	a.readCode(ctx, g)
	if len(g.Code) == 0 {
		a.takeRecorded(g)
	}
	for _, f := range g.frames {
		symbols := a.out.Frames[f.frame].Symbols
		g.needLine(&symbols[f.depth])
		if name := symbols[len(symbols)-1].Function; f.depth < len(symbols)-1 && len(g.InlinedInto) < maxInlinedInto && !slices.Contains(g.InlinedInto, name) {
			g.InlinedInto = append(g.InlinedInto, name)
		}
	}
	lines := a.lines(g)
	for i := range g.Code {
		if line, ok := lines[g.ownLines[i]]; ok {
			g.Code[i].Line = line
		} else {
			g.Code[i].Line = -1
		}
	}
	a.place(g, lines)
}

// isEntry reports whether a frame stands for a kernel of which only the dispatch is known.
func (a *annotator) isEntry(frame int) bool {
	f := &a.out.Frames[frame]
	return f.Device && f.FoundBy == trace.ByLaunch
}

// place finds the places of frames in the function.
func (a *annotator) place(g *annotated, lines map[lineKey]int32) {
	for _, f := range g.frames {
		if a.samples[f.frame] == 0 {
			continue
		}
		p := trace.AnnotatedPlace{Frame: uint32(f.frame), Code: -1, Line: -1, IsInlined: f.depth > 0, Kernel: f.kernel} //nolint:gosec // an index of Frames
		if !a.isEntry(f.frame) {
			s := &a.out.Frames[f.frame].Symbols[f.depth]
			if line, ok := lines[lineKey{s.File, s.Line}]; ok {
				p.Line = line
			}
			if f.kernel < 0 || g.IsRecorded {
				p.Code = g.instruction(a.address(f.frame))
			}
		}
		g.Places = append(g.Places, p)
	}
}

// address returns the address of a frame among the instructions of its function.
func (a *annotator) address(frame int) uint64 {
	if p := &a.places[frame]; p.module != nil {
		return p.lookup
	}
	return a.out.Frames[frame].ModuleOffset
}
