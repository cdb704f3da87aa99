package profile

import (
	"context"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/engine/walk"
)

// A Maker makes profiles with what an engine has.
type Maker struct {
	Shared  *walk.Shared
	Plugins *plugin.Manager
	// Finder says where the files of a recording at a path are looked for.
	Finder func(path string) object.Finder
	// Sysroot is where paths of a recording are looked up; "" is "/".
	Sysroot string
}

// Options say how a recording is walked.
type Options struct {
	// Jobs is how many goroutines walk; 0: one for each CPU.
	Jobs int
	// Kallsyms is a file as /proc/kallsyms, which names the kernel's code; "":
	// nothing does.
	Kallsyms string
	// GPUSamples are files of samples of accelerators, which join the profile
	// (docs/gpu-samples.md).
	GPUSamples []string
}

// Make walks the stacks of all samples of a perf.data file, and joins samples
// of accelerators to them. The path may be "" where there are such. What went
// wrong with one of them is why its stack ends; the error is that there is no
// file, or that it is no recording.
func (k *Maker) Make(ctx context.Context, path string, o Options) (*Profile, error) {
	gpu, err := openGPUSamples(o.GPUSamples)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeGPUSamples(gpu) }()
	var f *perfdata.File
	if path != "" || len(gpu) == 0 {
		k.startPlugin(ctx, perfdata.Machine(path))
		if f, err = perfdata.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	kernel, err := openKernelNames(o.Kallsyms)
	if err != nil {
		return nil, err
	}
	r := k.newRecording(f)
	defer r.close()
	b := newProfileBuilder(r)
	prepared := b.prepareNames()
	defer prepared() // before what it reads is closed
	if f != nil {
		if err := r.walkAll(ctx, o.Jobs, b.add); err != nil {
			return nil, err
		}
	} else {
		b.out.Path = gpu[0].Path()
	}
	if err := b.addGPUSamples(ctx, gpu); err != nil {
		return nil, err
	}
	prepared()
	if !k.Shared.Options().NoSymbols {
		b.name(o.Jobs, kernel)
	}
	return b.profile(), nil
}

// A Profile is the stacks of all samples of a recording. Maker.Make makes
// one. It is plain data: nothing of it changes after that, and it does not
// depend on how many goroutines made it.
type Profile struct {
	Path   string
	Events []Event
	// Samples are one for each SAMPLE record, by time, also those that could not
	// be walked; then those of accelerators.
	Samples []Sample
	Threads []Thread
	// Stacks is a tree of frames: each entry is a frame with the stack of its
	// caller. Samples of equal stacks share an entry. Stacks[0] is the stack
	// without frames. A caller comes before those that it called.
	Stacks  []Stack
	Frames  []Frame // each once, by first appearance
	Modules []Module
	// Stops are why stacks end, each once.
	Stops []walk.Stopped
	// Problems are what went wrong with the recording, its files and plugins, each
	// a sentence.
	Problems []string
	// Lost is how many samples the kernel could not write.
	Lost uint64
}

// A Event is what was sampled.
type Event struct {
	Name string // as perf was told it: "cpu-clock"
	// Unit is that of weights: "nanoseconds" of clocks, else "count".
	Unit string
	// Lanes says that the samples are of waves, and that ActiveLanes is known.
	Lanes bool
}

// A Thread is a thread under one name: one that renamed itself is two.
type Thread struct {
	PID, TID int // -1: not known
	Comm     string
}

// A Sample is one moment of one thread.
type Sample struct {
	Event  int32  // index of Events; -1: not known
	Thread uint32 // index of Threads
	Stack  uint32 // index of Stacks: the innermost frame
	Stop   uint32 // index of Stops
	// ActiveLanes is how many lanes of a wave executed.
	ActiveLanes uint32
	Time        uint64 // nanoseconds, of the recording's clock
	Weight      uint64 // how many units of the event it stands for
}

// A Stack is a frame and who called it.
type Stack struct {
	Caller uint32 // index of Stacks; 0: it is outermost
	Frame  uint32 // index of Frames
}

// A Frame is a physical frame at one address, with what it is called.
type Frame struct {
	PC      uint64
	Exact   bool // as in Frame
	Kernel  bool // it is of the kernel's code
	FoundBy code.FoundBy
	Module  int32 // index of Modules; -1: PC is in none
	// PID is that of the process, where Module is -1 and Kernel is not set; -1: not
	// known.
	PID int
	// ModuleOffset is PC as an ELF virtual address of the module's object.
	ModuleOffset uint64
	// Symbols are the functions at PC, innermost first; empty where nothing is
	// known, or nothing was asked.
	Symbols []symbol.Frame
}

// A Module is a code object where one process, or several in the same
// way, had it mapped.
type Module struct {
	*target.Module
	// Start, End and Offset are of the executable mapping, Offset in its file.
	Start, End, Offset uint64
	Kernel             bool
	code.Info          // what was found out about its symbols
}

// StackFrames appends the frames of a stack, innermost first, as indices of
// p.Frames.
func (p *Profile) StackFrames(dst []uint32, stack uint32) []uint32 {
	for ; stack != 0; stack = p.Stacks[stack].Caller {
		dst = append(dst, p.Stacks[stack].Frame)
	}
	return dst
}
