// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// This file finds the code of frames that profilers know by the number of a cubin, the name of a
// function in it and an offset in that: in the cubins that the user provides.

// hasObjectIDs reports whether a file has such frames.
func hasObjectIDs(f *stacktree.File) bool {
	return slices.ContainsFunc(f.Frames, func(f stacktree.Frame) bool { return f.HasObjectID })
}

// A cubinJoin has the code of the functions of cubins.
type cubinJoin struct {
	provided *providedObjects
	objects  map[*object.Object]*kernelObjects
	cubins   map[uint64]*numberedCubin
	batch    walkedBatch
}

// A numberedCubin is a cubin with the number by which a profiler knows it.
type numberedCubin struct {
	object  *object.Object // nil: it was not provided, or is not certain
	problem string
	// frames are those without code, and example why the first is.
	frames  int
	example string
}

func newCubinJoin(provided *providedObjects) *cubinJoin {
	return &cubinJoin{provided: provided, objects: map[*object.Object]*kernelObjects{}, cubins: map[uint64]*numberedCubin{}}
}

// cubin returns the cubin of a number.
func (c *cubinJoin) cubin(id uint64) *numberedCubin {
	n := c.cubins[id]
	if n == nil {
		n = &numberedCubin{}
		c.cubins[id] = n
		var found *providedObject
		if found, n.problem = c.provided.withID(id); found != nil {
			n.object = found.Object
		}
	}
	return n
}

// find finds the code of a function of a cubin.
func (c *cubinJoin) find(o *object.Object, function string) (place kernelCode, problem string) {
	k := c.objects[o]
	if k == nil {
		k = newKernelObjects([]*object.Object{o})
		c.objects[o] = k
	}
	return k.find(function)
}

// cubinFrame returns the index of a frame in the profile.
func (j *stackJoin) cubinFrame(f *stacktree.Frame) uint32 {
	b, physical := j.b, &f.Symbols[len(f.Symbols)-1]
	name := cmp.Or(physical.LinkageName, physical.Function)
	n := j.cubins.cubin(f.ObjectID)
	problem := n.problem
	if n.object != nil {
		index, why := j.codeFrame(n.object, name, f)
		if why == "" {
			return index
		}
		problem = why
	}
	if n.frames++; n.frames == 1 {
		n.example = problem
	}
	kernel := j.b.stackKernel(&trace.ProfileKernel{Name: name})
	index := b.named(namedFrame{name: name, namer: j.file.Form, module: j.module(f), kernel: kernel, offset: f.Address, hasOffset: true, isDevice: true})
	b.out.Frames[index].FoundBy = trace.ByProfiler
	return index
}

// codeFrame returns the index of a frame at an offset in a function of an object; problem is why there
// is none.
func (j *stackJoin) codeFrame(o *object.Object, function string, f *stacktree.Frame) (index uint32, problem string) {
	place, problem := j.cubins.find(o, function)
	if problem != "" {
		return 0, fmt.Sprintf("%s: %s", function, problem)
	}
	if f.Address >= place.size {
		return 0, fmt.Sprintf("%s has %d bytes in it, and the offset is %#x", function, place.size, f.Address)
	}
	m := j.b.providedModule(j.cubins.provided, o)
	start, ok := m.codeAddress(place)
	if !ok {
		return 0, function + " is in no section that is loaded"
	}
	step := walk.Step{Found: code.IndexOf(trace.ByContext), Exact: true}
	if problem = m.placeCode(&step, start+f.Address); problem != "" {
		return 0, fmt.Sprintf("%s: %s", function, problem)
	}
	j.b.placeGPUModule(m, &step)
	index = j.b.frame(&step, &walkedSample{}, &j.cubins.batch)
	out := &j.b.out.Frames[index]
	out.Device = true
	out.Dispatched = j.b.stackKernel(&trace.ProfileKernel{Name: function})
	if kernel := &j.b.out.Kernels[out.Dispatched]; kernel.Module < 0 {
		kernel.Module = out.Module
	}
	return index, ""
}

// reportCubins says of which cubins frames have no code.
func (j *stackJoin) reportCubins() {
	ids := make([]uint64, 0, len(j.cubins.cubins))
	for id, n := range j.cubins.cubins {
		if n.frames > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	const most = 16
	for _, id := range ids[:min(len(ids), most)] {
		n := j.cubins.cubins[id]
		j.b.recording.problem("%s: cubin %016x: %s without code: %s", j.file.Path, id, countFrames(n.frames), n.example)
	}
	if len(ids) > most {
		j.b.recording.problem("%s: %d more cubins with frames without code", j.file.Path, len(ids)-most)
	}
}
