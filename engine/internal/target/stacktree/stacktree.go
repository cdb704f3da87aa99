// SPDX-License-Identifier: Apache-2.0

// Package stacktree has the stacks of files that other profilers wrote: as text, as spans of a
// trace, or as tables. The packages beside it each read one kind of file:
//
//	stacktext    the text of perf script, and folded stacks
//	chrometrace  Chrome traces, as PyTorch writes them
//	nsys         exports of Nsight Systems
//	pprofstacks  profiles of pprof
//	otlpstacks   profiles of OpenTelemetry
//	cuptipc      PC samples of CUPTI
//
// Frames have the names that the file gives, or addresses whose names are looked up later.
package stacktree

import (
	"errors"
	"fmt"
	"math"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/problems"
	"github.com/unwindd/unwindd/internal/trie"
)

// ErrOtherForm is the error for a file that is not of a format.
var ErrOtherForm = errors.New("not of the format")

const (
	maxProblems = 50
	// maxEvents bounds the events of a file.
	maxEvents = 1 << 10
	// MaxNodes bounds the frames, stacks, samples and threads of a file, whose numbers have 32 bits.
	MaxNodes = 1<<31 - 1
)

// File is everything in a file of stacks.
type File struct {
	Path string
	// Form is the user's name of the format: "perf script".
	Form string
	// Arch is the machine as uname -m names it; "" where it is unknown.
	Arch    string
	Events  []trace.ProfileEvent // by first appearance
	Threads []trace.ProfileThread
	Frames  []Frame
	// Stacks[0] is the stack without frames. A caller comes before its callees.
	Stacks []trace.ProfileStack
	// Samples have indices of this file's lists. Launch, ActiveLanes and State are set for
	// samples of accelerators only.
	Samples []trace.ProfileSample
	Kernels []trace.ProfileKernel
	// States are the states of waves, by ProfileSample.State less 1.
	States []trace.WaveState
	// Stops are the reasons why stacks end, by ProfileSample.Stop.
	Stops []trace.Stopped
	// Mappings are where code was mapped, as far as the file has that.
	Mappings []Mapping
	Problems []string
}

// Frame is a frame of a file.
type Frame struct {
	// Symbols are the names in the file, innermost first; none where it has none.
	Symbols []trace.Symbol
	// Object is the path of the code object, or a name as "[kernel.kallsyms]"; "" where it is
	// unknown.
	Object string
	// BuildID is the build ID of Object; nil where the file has none.
	BuildID []byte
	// Address is the address of the frame, where HasAddress: in the process, or a file offset
	// or an ELF virtual address of Object, as Place says.
	Address    uint64
	HasAddress bool
	Place      Place
	// Exact is true where the frame is the innermost one: no call precedes Address.
	Exact bool
	// SymbolOffset is the distance of Address from the first byte of the physical function of
	// Symbols, where HasSymbolOffset.
	SymbolOffset    uint64
	HasSymbolOffset bool
	// PID is the ID of the process; where only that of a thread is known, that one. -1: none is.
	PID            int
	Kernel, Device bool
	// ObjectID is the number by which the profiler knows the code object of an accelerator that
	// the frame is in, where HasObjectID: see CubinOf. Its function is the one of Symbols, and
	// Address counts from its first byte.
	ObjectID    uint64
	HasObjectID bool
	// Dispatched is the index of File.Kernels of a kernel that was dispatched; -1: it is none.
	Dispatched int32
}

// Place tells from where an address counts.
type Place uint8

// The places.
const (
	// PlaceUnknown: of the process, or an offset of the file, as writers differ.
	PlaceUnknown Place = iota
	// PlaceOffset: an offset of the file.
	PlaceOffset
	// PlaceObject: an ELF virtual address of the object.
	PlaceObject
	// PlaceProcess: an address of the process.
	PlaceProcess
	// PlaceImage: a distance from the header of a Mach-O file.
	PlaceImage
)

// Mapping is a range of a process's memory with code of a file.
type Mapping struct {
	PID                int
	Start, End, Offset uint64
	Path               string
}

// Builder makes a File. Every list has each element once.
type Builder struct {
	File
	problems problems.List[string]
	events   map[string]int16
	threads  map[trace.ProfileThread]uint32
	kernels  map[string]int32
	named    map[string]uint32
	states   map[string]uint8 // indices of File.States, by the names of reasons
	tree     *trie.Trie
}

// NewBuilder returns a Builder of an empty File.
func NewBuilder(path, form string) *Builder {
	return &Builder{
		File:    File{Path: path, Form: form, Stacks: make([]trace.ProfileStack, 1)},
		events:  map[string]int16{},
		threads: map[trace.ProfileThread]uint32{}, kernels: map[string]int32{}, named: map[string]uint32{}, states: map[string]uint8{},
		tree: trie.New(0),
	}
}

// Event returns the index of an event. Names alone tell events apart.
func (b *Builder) Event(e trace.ProfileEvent) (index int16, ok bool) {
	index, ok = b.events[e.Name]
	if ok {
		return index, true
	}
	if len(b.Events) >= maxEvents {
		return -1, false
	}
	index = int16(len(b.Events)) //nolint:gosec // at most maxEvents
	b.events[e.Name] = index
	b.Events = append(b.Events, e)
	return index, true
}

// Thread returns the index of a thread.
func (b *Builder) Thread(pid, tid int, comm string) uint32 {
	t := trace.ProfileThread{PID: pid, TID: tid, Comm: comm}
	index, ok := b.threads[t]
	if !ok {
		index = uint32(len(b.Threads)) //nolint:gosec // fewer than the bytes of a file
		b.threads[t] = index
		b.Threads = append(b.Threads, t)
	}
	return index
}

// Frame adds a frame, which the caller knows to be new.
func (b *Builder) Frame(f Frame) uint32 {
	b.Frames = append(b.Frames, f)
	return uint32(len(b.Frames) - 1) //nolint:gosec // fewer than the bytes of a file
}

// Named returns the index of a frame that has only the name of a function.
func (b *Builder) Named(function string) uint32 {
	index, ok := b.named[function]
	if !ok {
		index = b.Frame(Frame{Symbols: []trace.Symbol{{Function: function}}, PID: -1, Dispatched: -1})
		b.named[function] = index
	}
	return index
}

// Push returns the index of a stack.
func (b *Builder) Push(caller, frame uint32) uint32 {
	stack, isNew := b.tree.Child(caller, frame)
	if isNew {
		b.Stacks = append(trie.Grown(b.Stacks), trace.ProfileStack{Caller: caller, Frame: frame})
	}
	return stack
}

// Stop returns the index of a reason why stacks end, of which there are few.
func (b *Builder) Stop(s trace.Stopped) uint16 {
	for i := range b.Stops {
		if b.Stops[i] == s {
			return uint16(i) //nolint:gosec // few
		}
	}
	b.Stops = append(b.Stops, s)
	return uint16(len(b.Stops) - 1) //nolint:gosec // few
}

// Kernel returns the index of a kernel of an accelerator, and the frame of its dispatches.
func (b *Builder) Kernel(name string) (index int32, frame uint32) {
	index, ok := b.kernels[name]
	if !ok {
		index = int32(len(b.Kernels)) //nolint:gosec // fewer than the bytes of a file
		b.kernels[name] = index
		b.Kernels = append(b.Kernels, trace.ProfileKernel{Name: name, Module: -1})
		b.named["\x00"+name] = b.Frame(Frame{Symbols: []trace.Symbol{{Function: name}}, PID: -1, Device: true, Dispatched: index})
	}
	return index, b.named["\x00"+name]
}

// DeviceFrame returns the index of a frame of an accelerator that is no kernel.
func (b *Builder) DeviceFrame(name string) uint32 {
	index, ok := b.named["\x01"+name]
	if !ok {
		index = b.Frame(Frame{Symbols: []trace.Symbol{{Function: name}}, PID: -1, Device: true, Dispatched: -1})
		b.named["\x01"+name] = index
	}
	return index
}

// Problem adds a sentence to the problems, with the file's path before it.
func (b *Builder) Problem(format string, args ...any) {
	if b.problems.HasRoom(maxProblems) {
		b.problems.Keep(b.Path + ": " + fmt.Sprintf(format, args...))
	}
}

// Finish returns the file. The Builder is not used any more.
func (b *Builder) Finish() *File {
	b.Problems = append(b.Problems, b.problems.Kept()...)
	if n := b.problems.Dropped(); n > 0 {
		b.Problems = append(b.Problems, fmt.Sprintf("%s: %d more problems", b.Path, n))
	}
	return &b.File
}

// Check returns an error where an index of the file is of no element of its list, or a caller
// does not come before its callees.
func (f *File) Check() error {
	for i, s := range f.Stacks[1:] {
		if int(s.Caller) > i || int(s.Frame) >= len(f.Frames) {
			return fmt.Errorf("stack %d: %+v", i+1, s)
		}
	}
	for i := range f.Frames {
		if n := f.Frames[i].Dispatched; n < -1 || int(n) >= len(f.Kernels) {
			return fmt.Errorf("frame %d is of kernel %d", i, n)
		}
	}
	for i, s := range f.Samples {
		if s.Event < 0 || int(s.Event) >= len(f.Events) || int(s.Thread) >= len(f.Threads) || int(s.Stack) >= len(f.Stacks) || int(s.Stop) >= len(f.Stops) || int(s.State) > len(f.States) {
			return fmt.Errorf("sample %d: %+v", i, s)
		}
	}
	return nil
}

// Position returns a line or a column of a file as a number of trace.Symbol; 0: none.
func Position(n int64) int {
	if n < 0 || n > math.MaxInt32 {
		return 0
	}
	return int(n)
}
