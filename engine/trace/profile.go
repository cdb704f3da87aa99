// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math"
	"math/bits"
)

// KernelTimeEvent is the name of the event whose samples are the dispatches of kernels, each as
// long as it ran.
const KernelTimeEvent = "gpu-kernel-time"

// OffCPUEvent is the name of the event whose samples are the times that threads were on no CPU, in
// nanoseconds: a thread's stack as it stopped, with a frame for its state, [sleeping]. WakersEvent
// is that of the stacks that woke threads, with the time that those had been stopped.
const (
	OffCPUEvent = "off-cpu"
	WakersEvent = "off-cpu-wakers"
)

// Profile is the stacks of all samples of a recording. engine.Engine.Profile makes one. It does
// not depend on how many goroutines made it.
type Profile struct {
	Path   string
	Events []ProfileEvent
	// Samples are one for each SAMPLE record, by time, including records that could not be
	// walked; then the samples of accelerators; then OffCPUEvent's and WakersEvent's, by time.
	Samples []ProfileSample
	Threads []ProfileThread
	// Stacks is a tree of frames: each entry is a frame with the stack of its caller. Samples
	// of equal stacks share an entry. Stacks[0] is the stack without frames. A caller comes
	// before its callees.
	Stacks []ProfileStack
	// Frames has each frame once, by first appearance. Where code belongs to several functions
	// and callers call another one than the first, frames of that one follow all others.
	Frames  []ProfileFrame
	Modules []ProfileModule
	// Kernels are the functions of accelerators that were dispatched, by first appearance.
	Kernels []ProfileKernel
	// States are the states of waves when they were sampled, by first appearance. States[0] is
	// for an unknown state.
	States []WaveState
	// Memory has the kinds of accesses to memory of samples that perf mem recorded, by event, the
	// most frequent first.
	Memory []DataAccess
	// Annotations are annotations of the functions of ProfileOptions.Annotate.
	Annotations []ProfileAnnotation
	// Runtimes are the names of the language runtimes that modules with frames have, where the
	// recording has none of their own frames.
	Runtimes []string
	// Stops are the reasons why stacks end, each once.
	Stops []Stopped
	// Problems are the problems with the recording, its files and plugins, each a sentence.
	Problems []string
	// Lost is how many samples the kernel could not write.
	Lost uint64
	// WallOffset is added to the Time of a sample of the CPU for nanoseconds since 1970, where
	// HasWallOffset: the recording has one moment by both clocks.
	WallOffset    int64
	HasWallOffset bool
}

// ProfileEvent is a sampled counter.
type ProfileEvent struct {
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
	// Meaning is perf's general name of the event, whatever Name says: "cycles" also of
	// "cpu_core/cycles:Pu/"; "" where there is none.
	Meaning string
	// PMU is the number of the unit that counted, where several count such events; "" where that is
	// not known, or only Name says it.
	PMU string
}

// ProfileThread is a thread under one name: one that renamed itself is two.
type ProfileThread struct {
	PID, TID int // -1: not known
	Comm     string
}

// ProfileSample is one moment of one thread.
type ProfileSample struct {
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
	// CPU is the number of the processor that the thread was on, where HasCPU.
	CPU    uint32
	HasCPU bool
	// More is how many further samples of an accelerator were the same, except for their times, of
	// which Time is the first. See ProfileOptions.JoinDevice.
	More uint16
}

// Count returns how many samples s stands for: 1 without More.
func (s *ProfileSample) Count() uint64 { return uint64(s.More) + 1 }

// Total returns the Weight of all samples that s stands for; it does not wrap around.
func (s *ProfileSample) Total() uint64 {
	high, low := bits.Mul64(s.Weight, s.Count())
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

// LaunchEvidence is how the stack that launched a wave is known.
type LaunchEvidence uint8

// The kinds, in the order of how much they prove.
const (
	// LaunchUnknown: the wave is under no stack, or the sample is of the CPU.
	EvidenceUnknown LaunchEvidence = iota
	// LaunchNear: the stack is of the launching thread at another moment, the nearest that was
	// sampled. It may not be the one that launched the wave.
	EvidenceNear
	// LaunchProbe: the stack was sampled by a probe as the thread made the launching call.
	EvidenceProbe
	// LaunchRecorded: the profiler kept the stack of the launch.
	EvidenceRecorded
)

// String is the name of the evidence in the output: "" for LaunchUnknown.
func (e LaunchEvidence) String() string {
	return [...]string{"", "near", "probe", "recorded"}[min(e, EvidenceRecorded)]
}

// ProfileKernel is a function of an accelerator that was dispatched.
type ProfileKernel struct {
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

// ProfileStack is a frame and its caller's stack.
type ProfileStack struct {
	Caller uint32 // index of Stacks; 0: it is outermost
	Frame  uint32 // index of Frames
}

// ProfileFrame is a physical frame at one address, with its names.
type ProfileFrame struct {
	PC     uint64
	Exact  bool // as in Frame
	Kernel bool // it is of the kernel's code
	Device bool // it is of an accelerator's code
	// Dispatched is the index in Kernels of the function that it is in, where that was
	// dispatched; else -1.
	Dispatched int32
	// NamedBy is the source of its name, where that was not the code object: the format of the
	// file that has the names, as `unwindd profile` names it.
	NamedBy string
	// Instruction is the text of the instruction at PC from a file of samples.
	Instruction string
	FoundBy     FoundBy
	Module      int32 // index of Modules; -1: PC is in none
	// PID is the ID of the process, where Module is -1 and Kernel is not set; -1: not known.
	PID int
	// ModuleOffset is PC as an ELF virtual address of the module's object.
	ModuleOffset uint64
	// Managed is the language runtime whose function the frame is, which has no PC; nil: it is
	// native.
	Managed *Managed
	// Symbols are the functions at PC, innermost first; empty where nothing is known, or no
	// symbols were requested.
	Symbols []Symbol
}

// ProfileModule is a code object where one process, or several in the same way, had it mapped.
type ProfileModule struct {
	*Module
	// Start, End and Offset are the executable mapping, Offset in its file.
	Start, End, Offset uint64
	Kernel             bool
	ModuleInfo         // the findings about its symbols
}

// StackFrames appends the frames of a stack, innermost first, as indices of p.Frames.
func (p *Profile) StackFrames(dst []uint32, stack uint32) []uint32 {
	for ; stack != 0; stack = p.Stacks[stack].Caller {
		dst = append(dst, p.Stacks[stack].Frame)
	}
	return dst
}

// WaveState is the activity of a sampled wave, or the reason why it waited.
type WaveState struct {
	Name string // in the profiler's words, short and lower case: "waitcnt", "sbid"
	// Stalled is true where the wave waited. Else it issued an instruction, or was
	// active.
	Stalled bool
}
