// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"io"
	"time"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/disassembler"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/engine/walk"
)

// Maker makes profiles with an engine's plugins and files.
type Maker struct {
	Shared  *walk.Shared
	Plugins *plugin.Manager
	// Finder returns where the files of a recording at a path are looked for.
	Finder func(path string) object.Finder
	// Sysroot is where paths of a recording are looked up; "" is "/".
	Sysroot string
	// Disassembler gives the text of instructions of annotations; nil: architectures do.
	Disassembler *disassembler.Program
}

// Options say how a recording is walked.
type Options struct {
	// Jobs is how many goroutines walk; 0: one for each CPU.
	Jobs int
	// Kallsyms is a file like /proc/kallsyms, which names the kernel's code; "": the file in
	// the recording's directory, where it is one with such a file.
	Kallsyms string
	// Roots are directories under which the files of processes are looked up, in place of the
	// Maker's Sysroot, by process ID. Children of such a process have its root.
	Roots map[int]string
	// GPU are files of samples of accelerators, which join the profile: of any known format,
	// recognised by their contents (docs/profile.md, "Accelerators").
	GPU []string
	// Objects are code objects of accelerators, or files that they are in. They replace objects
	// that the profiler did not keep or name.
	Objects []string
	// JoinWindow is how far a sample of the CPU may be from a launch to be taken for its stack,
	// where none was taken at the launch itself; 0: none is.
	JoinWindow time.Duration
	// Annotate are names of functions to annotate: as they are printed, or without parameters,
	// or as they are called in the source. A name that no function has is an error.
	Annotate []string
	// Parts are the data that Maker.MakePart wrote of each part of the recording, in their
	// order: no sample is walked, and the profile is the same as if all were. Errors of data
	// that is no part of the recording wrap ErrPart. None: the samples are walked here.
	Parts []io.Reader
	// Size is how many bytes of the file are the recording, from the first on; 0: all.
	Size int64
	// Progress is called with how many samples and dispatches are done, of how many in all;
	// nil: it is not called. It is called for every few samples, by one goroutine at a time.
	// done never decreases, and the files may lie about the total.
	Progress func(done, total uint64)
}

// Make walks the stacks of all samples of a perf.data file, and joins samples of accelerators
// to them. The path may be "" where there are such. A problem with a single sample is the
// reason why its stack ends; the error is that there is no file, that it is no recording, or
// that a file became shorter meanwhile (object.ErrFileShrank).
func (k *Maker) Make(ctx context.Context, path string, o Options) (*Profile, error) {
	gpu, err := openAllGPU(o.GPU)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAllGPU(gpu) }()
	var f *perfdata.File
	if path != "" || len(gpu) == 0 {
		if f, err = k.open(ctx, path, &o); err != nil {
			return nil, err
		}
		defer f.Close()
	} else if err := openRoots(o.Roots); err != nil {
		return nil, err
	}
	kernel, err := openKernelNames(o.Kallsyms)
	if err != nil {
		return nil, err
	}
	r := k.newRecording(f)
	defer r.close()
	if kernel == nil && f != nil {
		kernel = r.recordedKernelNames()
	}
	b := newProfileBuilder(r)
	b.progress = newProgress(o.Progress, f, gpu)
	prepared := b.prepareNames()
	defer prepared() // before the files it reads are closed
	if f != nil {
		if err := b.addAll(ctx, &o); err != nil {
			return nil, err
		}
		r.checkRoots(o.Roots)
	} else {
		b.out.Path = gpu[0].Facts().Path
	}
	if err := b.addGPU(ctx, gpu, &o); err != nil {
		return nil, err
	}
	prepared()
	if !k.Shared.Options().NoSymbols {
		b.name(ctx, o.Jobs, kernel)
	}
	if err := b.annotate(ctx, o.Annotate); err != nil {
		return nil, err
	}
	if err := object.Shrunk(); err != nil { // before its files are closed
		return nil, err
	}
	return b.profile(), nil
}

// open opens a recording, while the plugin of its architecture starts.
func (k *Maker) open(ctx context.Context, path string, o *Options) (*perfdata.File, error) {
	if err := openRoots(o.Roots); err != nil {
		return nil, err
	}
	k.startPlugin(ctx, perfdata.Machine(path))
	f, err := perfdata.OpenStart(path, o.Size)
	if err == nil {
		f.SetRoots(o.Roots)
	}
	return f, err
}

// addAll adds all samples of the recording: walked here, or with the stacks from its parts.
func (b *profileBuilder) addAll(ctx context.Context, o *Options) error {
	if len(o.Parts) > 0 {
		return b.join(ctx, o.Parts)
	}
	return b.recording.walkAll(ctx, o.Jobs, nil, b.add)
}

// Profile is the stacks of all samples of a recording. Maker.Make makes one. It is plain data:
// nothing of it changes after that, and it does not depend on how many goroutines made it.
type Profile struct {
	Path   string
	Events []Event
	// Samples are one for each SAMPLE record, by time, including records that could not be
	// walked; then the samples of accelerators.
	Samples []Sample
	Threads []Thread
	// Stacks is a tree of frames: each entry is a frame with the stack of its caller. Samples
	// of equal stacks share an entry. Stacks[0] is the stack without frames. A caller comes
	// before its callees.
	Stacks []Stack
	// Frames has each frame once, by first appearance. Where code belongs to several functions
	// and callers call another one than the first, frames of that one follow all others.
	Frames  []Frame
	Modules []Module
	// Kernels are the functions of accelerators that were dispatched, by first appearance.
	Kernels []Kernel
	// States are the states of waves when they were sampled, by first appearance. States[0] is
	// for an unknown state.
	States []gpusamples.State
	// Annotations are annotations of the functions of Options.Annotate.
	Annotations []Annotation
	// Stops are the reasons why stacks end, each once.
	Stops []walk.Stopped
	// Problems are the problems with the recording, its files and plugins, each a sentence.
	Problems []string
	// Lost is how many samples the kernel could not write.
	Lost uint64
	// WallOffset is added to the Time of a sample of the CPU for nanoseconds since 1970, where
	// HasWallOffset: the recording has one moment by both clocks.
	WallOffset    int64
	HasWallOffset bool
}

// Event is a sampled counter.
type Event struct {
	Name string // as in perf's command line: "cpu-clock"
	// Unit is the unit of weights: "nanoseconds" for clocks, else "count".
	Unit string
	// Lanes is true where the samples are of waves, and ActiveLanes is known.
	Lanes bool
	// States is true where the samples have a State.
	States bool
	// Device is true where the samples are of accelerators.
	Device bool
	// OtherClock is true where the times are not by the recording's clock.
	OtherClock bool
}

// Thread is a thread under one name: one that renamed itself is two.
type Thread struct {
	PID, TID int // -1: not known
	Comm     string
}

// Sample is one moment of one thread.
type Sample struct {
	Time   uint64 // nanoseconds, of the recording's clock
	Weight uint64 // how many units of the event it stands for
	Stack  uint32 // index of Stacks: the innermost frame
	Thread uint32 // index of Threads
	Event  int16  // index of Events; -1: not known
	Stop   uint16 // index of Stops
	// ActiveLanes is how many lanes of a wave executed.
	ActiveLanes uint16
	State       uint8 // index of States
	// Launch is how the launching thread of the wave is known.
	Launch LaunchEvidence
}

// LaunchEvidence is how the stack that launched a wave is known.
type LaunchEvidence uint8

// The kinds, in the order of how much they prove.
const (
	// LaunchUnknown: the wave is under no stack, or the sample is of the CPU.
	LaunchUnknown LaunchEvidence = iota
	// LaunchNear: the stack is of the launching thread at another moment, the nearest that was
	// sampled. It may not be the one that launched the wave.
	LaunchNear
	// LaunchProbe: the stack was sampled by a probe as the thread made the launching call.
	LaunchProbe
	// LaunchRecorded: the profiler kept the stack of the launch.
	LaunchRecorded
)

// String is the name of the evidence in the output: "" for LaunchUnknown.
func (e LaunchEvidence) String() string {
	return [...]string{"", "near", "probe", "recorded"}[min(e, LaunchRecorded)]
}

// Kernel is a function of an accelerator that was dispatched.
type Kernel struct {
	Name string // its linkage name, or as the profiler has it
	// Module is an index of Modules; -1: not known.
	Module int32
	// Dispatches is how often it ran, as far as that is recorded, and Time for how long in all,
	// in nanoseconds, where HasTime.
	Dispatches uint64
	Time       uint64
	HasTime    bool
	// Lanes is the width of its waves; 0: not known.
	Lanes uint32
}

// Stack is a frame and its caller's stack.
type Stack struct {
	Caller uint32 // index of Stacks; 0: it is outermost
	Frame  uint32 // index of Frames
}

// Frame is a physical frame at one address, with its names.
type Frame struct {
	PC     uint64
	Exact  bool // as in Frame
	Kernel bool // it is of the kernel's code
	Device bool // it is of an accelerator's code
	// Dispatched is the index in Kernels of the function that it is in, where that was
	// dispatched; else -1.
	Dispatched int32
	// NamedBy is the source of its name, where that was not the code object: the format of the
	// file that has the names, as in gpusamples.Facts.
	NamedBy string
	// Instruction is the text of the instruction at PC from a file of samples.
	Instruction string
	FoundBy     code.FoundBy
	Module      int32 // index of Modules; -1: PC is in none
	// PID is the ID of the process, where Module is -1 and Kernel is not set; -1: not known.
	PID int
	// ModuleOffset is PC as an ELF virtual address of the module's object.
	ModuleOffset uint64
	// Symbols are the functions at PC, innermost first; empty where nothing is known, or no
	// symbols were requested.
	Symbols []symbol.Frame
}

// Module is a code object where one process, or several in the same way, had it mapped.
type Module struct {
	*target.LoadedModule
	// Start, End and Offset are the executable mapping, Offset in its file.
	Start, End, Offset uint64
	Kernel             bool
	code.Info          // the findings about its symbols
}

// StackFrames appends the frames of a stack, innermost first, as indices of p.Frames.
func (p *Profile) StackFrames(dst []uint32, stack uint32) []uint32 {
	for ; stack != 0; stack = p.Stacks[stack].Caller {
		dst = append(dst, p.Stacks[stack].Frame)
	}
	return dst
}
