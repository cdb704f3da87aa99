// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"path"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// gpuKernel is a kernel of a file of samples.
type gpuKernel struct {
	*gpusamples.Kernel
	index  int32 // of Profile.Kernels
	module *gpuModule
	// start and end are its addresses in the module's code, where known.
	start, end uint64
	isKnown    bool
	frame      uint32 // of Profile.Frames, once hasFrame
	hasFrame   bool
}

// out returns the kernel in the profile.
func (k *gpuKernel) out(j *gpuJoin) *trace.ProfileKernel { return &j.b.out.Kernels[k.index] }

// kernelKey identifies a kernel of a profile: a kernel that several processes loaded is one.
type kernelKey struct{ name, module string }

// kernel returns a kernel of the file.
func (j *gpuJoin) kernel(index int) *gpuKernel {
	if k := j.kernels[index]; k != nil {
		return k
	}
	k := &gpuKernel{Kernel: &j.file.Kernels[index]}
	j.kernels[index] = k
	key := kernelKey{name: k.Name}
	if k.Module >= 0 {
		k.module = j.module(k.Module)
		key.module = k.module.Path
		k.find()
	} else if place, problem := j.provided.kernel(k.Name); problem == "" {
		k.module = j.b.providedModule(j.provided, place.object)
		key.module = k.module.Path
		k.start, k.isKnown = k.module.codeAddress(place)
		k.end = k.start + place.size
	} else if len(j.provided.list) > 0 {
		j.b.recording.problem("%s: kernel %s: %s", j.file.Path, k.Name, problem)
	}
	i, known := j.b.kernels[key]
	if !known {
		i = int32(len(j.b.out.Kernels)) //nolint:gosec // the files bound them
		j.b.kernels[key] = i
		j.b.out.Kernels = append(j.b.out.Kernels, trace.ProfileKernel{Name: symbol.Demangle(k.Name), Module: -1})
	}
	k.index = i
	out := k.out(j)
	out.Dispatches += k.Dispatches
	return k
}

// find finds the kernel's addresses in its module.
func (k *gpuKernel) find() {
	c := k.module.Code
	if k.start, k.isKnown = k.Entry, k.HasEntry; !k.isKnown {
		symbol, isSure, ok := c.Named(k.Name, false)
		if k.start, k.isKnown = symbol, ok && isSure; !k.isKnown {
			return
		}
	}
	k.end = k.start
	if b := c.BoundsAt(k.start); b.IsKnown && b.Start == k.start {
		k.end = b.End
	}
}

// isIn reports whether a frame is known to be in the kernel itself, and not in a function that
// it called.
func (j *gpuJoin) isIn(k *gpuKernel, frame uint32) bool {
	return j.b.out.Frames[frame].Dispatched == k.index
}

// markIn marks a frame in the kernel itself as such.
func (j *gpuJoin) markIn(k *gpuKernel, f *walk.Step, frame uint32) {
	if k.isKnown && k.module != nil && f.Kind == walk.ModuleCode && uint64(f.Owner) == uint64(k.module.ID) && f.Offset-k.start < k.end-k.start {
		j.dispatched(k, frame)
	}
}

// dispatched marks a frame as one of the dispatched kernel, and takes over its module.
func (j *gpuJoin) dispatched(k *gpuKernel, frame uint32) {
	f := &j.b.out.Frames[frame]
	f.Dispatched = k.index
	if out := k.out(j); out.Module < 0 {
		out.Module = f.Module
	}
}

// kernelFrame returns the frame of a kernel of which only the dispatch is known: at its first
// instruction, where that is known, and without a line.
func (j *gpuJoin) kernelFrame(k *gpuKernel) uint32 {
	if k.hasFrame {
		return k.frame
	}
	k.hasFrame = true
	step := walk.Step{Found: code.IndexOf(trace.ByLaunch), Exact: true}
	if k.module != nil && k.isKnown && k.module.placeCode(&step, k.start) == "" {
		j.b.placeGPUModule(k.module, &step)
		k.frame = j.b.frame(&step, &walkedSample{}, &j.batch)
		j.b.entries[k.frame] = true
	} else {
		n := namedFrame{name: k.Name, file: k.File, namer: j.file.Form, module: -1, kernel: k.index, isDevice: true}
		if k.module != nil {
			n.module = j.b.unplacedModule(k.module)
		}
		k.frame = j.b.named(n)
	}
	j.b.out.Frames[k.frame].Device = true
	j.dispatched(k, k.frame)
	return k.frame
}

// inKernel returns the frame of an offset in a kernel.
func (j *gpuJoin) inKernel(s *gpusamples.Sample, k *gpuKernel) uint32 {
	if k.module != nil && k.isKnown && s.Offset < k.end-k.start {
		f := walk.Step{Found: code.IndexOf(trace.ByContext), Exact: true}
		if k.module.placeCode(&f, k.start+s.Offset) == "" {
			j.b.placeGPUModule(k.module, &f)
			index := j.deviceFrame(&f, s)
			j.dispatched(k, index)
			return index
		}
	}
	index := j.b.named(namedFrame{
		name: k.Name, file: k.File, namer: j.file.Form, module: -1, kernel: k.index, offset: s.Offset, hasOffset: true, isDevice: true,
	})
	if f := &j.b.out.Frames[index]; f.Instruction == "" {
		f.Instruction = s.Instruction
	}
	return index
}

// namedFrame is a frame that has only a name.
type namedFrame struct {
	name, file, namer string
	module            int32
	kernel            int32 // index of Profile.Kernels; -1: not a kernel
	offset            uint64
	hasOffset         bool
	isDevice          bool
}

// named returns the index of a frame that has only a name.
func (b *profileBuilder) named(n namedFrame) uint32 {
	if index, ok := b.namedFrames[n]; ok {
		return index
	}
	index := uint32(len(b.out.Frames)) //nolint:gosec // as in addFrame
	b.namedFrames[n] = index
	f := trace.ProfileFrame{
		PC: n.offset, ModuleOffset: n.offset, Exact: true, Module: n.module, PID: -1, FoundBy: trace.ByLaunch,
		Device: n.isDevice, Dispatched: n.kernel, NamedBy: n.namer,
	}
	if n.hasOffset {
		f.FoundBy = trace.ByContext
	}
	s := trace.Symbol{Function: symbol.Demangle(n.name), File: n.file, HasStart: n.kernel >= 0}
	if s.Function != n.name {
		s.LinkageName = n.name
	}
	f.Symbols = []trace.Symbol{s}
	b.places = append(b.places, framePlace{isNamed: true})
	b.out.Frames = append(b.out.Frames, f)
	return index
}

// note records the names for a place in a file of samples, which are used where the code object
// has none.
func (b *profileBuilder) note(frame uint32, s *gpusamples.Sample, namer string) {
	b.out.Frames[frame].Instruction = s.Instruction
	if b.recording.maker.Shared.Options().NoSymbols || len(s.Source) == 0 && s.Instruction == "" {
		return
	}
	b.recordedPlaces[frame] = recordedPlace{namer, append([]gpusamples.Line(nil), s.Source...)}
}

// recordedPlace has the names for a place in a file of samples.
type recordedPlace struct {
	namer  string
	source []gpusamples.Line // innermost first
}

// nameRecorded names frames without names by the lines in their file, or else by the text of
// the instruction. Such a name includes the file's format.
func (b *profileBuilder) nameRecorded() {
	for i, n := range b.recordedPlaces {
		f := &b.out.Frames[i]
		if len(f.Symbols) > 0 {
			continue
		}
		f.NamedBy = n.namer
		for j, l := range n.source {
			f.Symbols = append(f.Symbols, trace.Symbol{
				Function: fmt.Sprintf("%s:%d [%s]", path.Base(l.File), l.Line, n.namer), File: l.File, Line: l.Line, Inlined: j+1 < len(n.source),
			})
		}
		if len(n.source) == 0 {
			f.Symbols = []trace.Symbol{{Function: fmt.Sprintf("%s [%s]", f.Instruction, n.namer)}}
		}
	}
	// A running kernel at an unknown place has no line, and no inlined calls.
	for i := range b.entries {
		f := &b.out.Frames[i]
		if n := len(f.Symbols); n > 0 {
			s := f.Symbols[n-1]
			s.Line, s.Column, s.Discriminator = 0, 0, 0
			f.Symbols = []trace.Symbol{s}
			continue
		}
		if f.Dispatched >= 0 {
			f.Symbols = []trace.Symbol{{Function: b.out.Kernels[f.Dispatched].Name}}
		}
	}
}
