// SPDX-License-Identifier: Apache-2.0

// Package gpusamples is what profilers of accelerators say, whatever form they
// write it in: which code was loaded, which kernels were dispatched and by whom,
// and where waves were when they were sampled. The packages beneath it each read
// one form:
//
//	jsonlines  docs/gpu-samples.md, lines of JSON that any profiler can write
//	rocprof    the JSON of rocprofv3 (ROCm)
//	unitrace   the stall table of unitrace (Intel), a CSV
//	iaprof     the text of iaprof (Intel)
//
// A reader goes once over the file when it is opened, and keeps what is in Facts.
// Samples are then delivered one after the other, so that the memory in use does
// not grow with them.
package gpusamples

import (
	"errors"

	"github.com/unwindd/unwindd/engine/target"
)

// ErrOtherForm says that a file does not begin as files of a form do. The error that
// wraps it is "PATH: not a file: REASON".
var ErrOtherForm = errors.New("not a file")

// DefaultEvent is the name of samples of program counters.
const DefaultEvent = "gpu-pc-sampling"

// StallEvent is the name of samples that count, for instructions, why threads
// waited.
const StallEvent = "gpu-stall-sampling"

// MaxStates bounds the states of a file.
const MaxStates = 255

// A File is one file, opened.
type File interface {
	// Facts are what the file says of all but its samples. They do not change.
	Facts() *Facts
	// Samples calls yield for each sample, in the order of the file. A Sample is
	// valid during the call. The error is that of yield, or says that the file was
	// cut while it was read; Problems has all else.
	Samples(yield func(*Sample) error) error
	// Problems are what is wrong with the file, each a sentence that names the file,
	// the place in it, and what was expected. They are complete when Samples
	// returned.
	Problems() []string
	Close() error
}

// Facts are what a file says of all but its samples.
type Facts struct {
	Path string
	// Form is who writes files as this one, as users know it: "rocprofv3".
	Form string
	// Clock is the name of the clock of all times ("CLOCK_BOOTTIME"); "" where it is
	// not told.
	Clock      string
	Events     []Event // by first appearance
	States     []State // of waves as they were sampled; at most MaxStates
	Processes  []Process
	Modules    []Module
	Kernels    []Kernel
	Dispatches []Dispatch
	Launches   []Launch // those that stand in samples are not among them
}

// An Event is what was sampled.
type Event struct {
	Name    string
	Samples int
	// Lanes says that all its samples have an execution mask.
	Lanes bool
}

// A State is what a wave did when it was sampled, or why it waited.
type State struct {
	Name string // in the profiler's words, short and lower case: "waitcnt", "sbid"
	// Stalled says that the wave waited. Without it the wave issued an instruction,
	// or was active.
	Stalled bool
}

// A Process is one that launched kernels.
type Process struct {
	PID  int
	Name string // of its program; "" where it is not told
}

// A Module is a code object that was loaded. The same file loaded again is another
// one.
type Module struct {
	ID  string
	PID int // of the process that it was loaded for; -1: of any
	// Path is where its file was; FILE#NAME for a code object inside a file by its
	// name; "" for one that was in no file.
	Path string
	// URI is the name that the profiler has for it, where that is not Path:
	// file://PATH#offset=N&size=N, memory://PID#offset=N&size=N.
	URI string
	// Offset and Size say which bytes of Path are the code object; Size 0: to the
	// file's end. Without a Path, Size is how many bytes the code object has, 0
	// where that is not told.
	Offset, Size uint64
	BuildID      []byte
	Arch         string // "" where it is not told
	Processor    string
	// Segments say where it was loaded; none where that is not told. Which of them
	// are executable is not known here.
	Segments []target.Segment
}

// A Kernel is a function that is dispatched.
type Kernel struct {
	Name   string // its linkage name, or as the profiler has it
	Module int    // index of Facts.Modules; -1 where that is not told
	// Entry is the ELF virtual address of its first instruction, where HasEntry.
	Entry    uint64
	HasEntry bool
	File     string // its source file, where that is told
	// Dispatches is how often it ran, where the file does not tell when: it has no
	// Dispatch for these.
	Dispatches uint64
}

// A Dispatch is one run of a kernel.
type Dispatch struct {
	ID           string
	PID          int    // -1: not told
	Agent, Queue string // IDs
	Kernel       int    // index of Facts.Kernels; -1: not told
	// Grid and Group are how many work-items there are in all and in a work-group.
	Grid, Group [3]uint32
	// Start and End are when it ran, in nanoseconds of Facts.Clock, where HasTime.
	Start, End uint64
	HasTime    bool
	Launch     int // index of Facts.Launches; -1: not told
}

// A Launch is a thread of the CPU as it launched waves.
type Launch struct {
	PID, TID int    // TID -1: not told
	Comm     string // the thread's name; "" where it is not told
	API      string // the function that it called to launch; "" where it is not told
	// Time is when, in nanoseconds of Facts.Clock, where HasTime. Where HasEnd it is
	// when the call of API began, and End is when it returned.
	Time, End       uint64
	HasTime, HasEnd bool
	// Frames are return addresses, innermost first. Names are the names of functions
	// where the profiler kept no addresses, innermost first. At most one of the two is
	// there.
	Frames []uint64
	Names  []string
}

// HasStack says whether the profiler kept the stack of the launch.
func (l *Launch) HasStack() bool { return len(l.Frames) > 0 || len(l.Names) > 0 }

// A Sample is where a wave was at one moment, or several waves that were at one
// place.
type Sample struct {
	Event int // index of Facts.Events
	PID   int // -1: not told
	// Module is the index of the module in Facts.Modules; -1 where it is in none, or
	// in one that is not described, which Problem says.
	Module int
	// Kernel is the index in Facts.Kernels of what was dispatched; -1 where that is not
	// told.
	Kernel int
	// Offset is the ELF virtual address in the module, where HasOffset; with InKernel
	// it counts from the first byte of Kernel instead, and Module is not set. Without
	// them PC is the address in the process.
	Offset              uint64
	HasOffset, InKernel bool
	PC                  uint64
	Problem             string
	Time                uint64 // nanoseconds of Facts.Clock, where HasTime
	HasTime             bool
	Weight              uint64 // how many units of the event it stands for
	// ActiveLanes of Lanes lanes executed, where HasLanes. Lanes is 0 where the width
	// of the wave is not told.
	ActiveLanes, Lanes uint32
	HasLanes           bool
	State              int // index of Facts.States; -1: not told
	// Instruction and Source are what the file itself says of the place: the text of
	// the instruction, and its line, with the lines that it was inlined from; "" where
	// it says nothing.
	Instruction string
	Source      []Line
	// Launch is who launched the wave; nil where that is not told. LaunchIndex is that of
	// Launch in Facts.Launches; -1 where it is not there.
	Launch      *Launch
	LaunchIndex int
}

// A Line is a line of a source file.
type Line struct {
	File string
	Line int
}
