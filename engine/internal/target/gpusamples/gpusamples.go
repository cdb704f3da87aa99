// SPDX-License-Identifier: Apache-2.0

// Package gpusamples has the data of accelerators' profilers, in whatever format they
// write it: which code was loaded, which kernels were dispatched and by which threads,
// and the places of waves when they were sampled. The packages beneath it each read
// one format:
//
//	jsonlines  docs/gpu-samples.md, lines of JSON that any profiler can write
//	rocprof    the JSON of rocprofv3 (ROCm)
//	unitrace   the stall table of unitrace (Intel), a CSV
//	iaprof     the text of iaprof (Intel)
//
// A reader goes once over the file when it is opened, and collects Facts. Samples are
// then delivered one after the other, so that the memory in use does not grow with
// them.
package gpusamples

import (
	"errors"

	"github.com/unwindd/unwindd/engine/trace"
)

// ErrOtherForm is the error for a file that does not begin as files of a format do. The
// error that wraps it is "PATH: not a file: REASON".
var ErrOtherForm = errors.New("not a file")

// DefaultEvent is the name of samples of program counters.
const DefaultEvent = "gpu-pc-sampling"

// StallEvent is the name of samples that count the reasons why threads waited at
// instructions.
const StallEvent = "gpu-stall-sampling"

// MaxStates bounds the states of a file.
const MaxStates = 255

// File is an open file.
type File interface {
	// Facts returns everything in the file except its samples. It does not change.
	Facts() *Facts
	// Samples calls yield for each sample, in the order of the file. A Sample is
	// valid during the call. The error is from yield, or means that the file was
	// truncated while it was read; all else is in Problems.
	Samples(yield func(*Sample) error) error
	// Problems returns the problems of the file, each a sentence that names the file,
	// the place in it, and the expectation. They are complete when Samples has
	// returned.
	Problems() []string
	Close() error
}

// Facts is everything in a file except its samples.
type Facts struct {
	Path string
	// Form is the user's name of the format: "rocprofv3".
	Form string
	// Clock is the name of the clock of all times ("CLOCK_BOOTTIME"); "" where it is
	// unknown.
	Clock      string
	Events     []Event           // by first appearance
	States     []trace.WaveState // of waves as they were sampled; at most MaxStates
	Processes  []Process
	Modules    []Module
	Kernels    []Kernel
	Dispatches []Dispatch
	Launches   []Launch // not the launches that are part of samples
}

// Event is an event that was sampled.
type Event struct {
	Name    string
	Samples int
	// Lanes is true where all its samples have an execution mask.
	Lanes bool
}

// Process is a process that launched kernels.
type Process struct {
	PID  int
	Name string // of its program; "" where it is unknown
}

// Module is a code object that was loaded. The same file loaded again is another
// one.
type Module struct {
	ID  string
	PID int // of the process that it was loaded for; -1: of any
	// Path is the path of its file; FILE#NAME for a named code object inside a file; ""
	// for one that was in no file.
	Path string
	// URI is the profiler's name for it, where that differs from Path:
	// file://PATH#offset=N&size=N, memory://PID#offset=N&size=N.
	URI string
	// Offset and Size are the range of the code object in Path; Size 0: to the file's
	// end. Without a Path, Size is the number of bytes of the code object, 0 where it is
	// unknown.
	Offset, Size uint64
	BuildID      []byte
	Arch         string // "" where it is unknown
	Processor    string
	// Segments are the addresses at which it was loaded; none where they are unknown.
	// Executable is not set.
	Segments []trace.Segment
}

// Kernel is a function that is dispatched.
type Kernel struct {
	Name   string // its linkage name, or the profiler's name
	Module int    // index of Facts.Modules; -1 where it is unknown
	// Entry is the ELF virtual address of its first instruction, where HasEntry.
	Entry    uint64
	HasEntry bool
	File     string // its source file, if known
	// Dispatches is the number of runs without a known time, for which there is no
	// Dispatch.
	Dispatches uint64
}

// Dispatch is one run of a kernel.
type Dispatch struct {
	ID           string
	PID          int    // -1: unknown
	Agent, Queue string // IDs
	Kernel       int    // index of Facts.Kernels; -1: unknown
	// Grid and Group are the numbers of work-items in total and in a work-group.
	Grid, Group [3]uint32
	// Start and End are the times of the run, in nanoseconds of Facts.Clock, where HasTime.
	Start, End uint64
	HasTime    bool
	Launch     int // index of Facts.Launches; -1: unknown
}

// Launch is a launch of waves by a thread of the CPU.
type Launch struct {
	PID, TID int    // TID -1: unknown
	Comm     string // the thread's name; "" where it is unknown
	API      string // the function that it called to launch; "" where it is unknown
	// Time is its time, in nanoseconds of Facts.Clock, where HasTime. Where HasEnd the
	// call of API began at Time, and returned at End.
	Time, End       uint64
	HasTime, HasEnd bool
	// Frames are return addresses, innermost first. Names are the names of functions,
	// innermost first, of a profiler that records no addresses. At most one of the two is
	// set.
	Frames []uint64
	Names  []string
}

// HasStack reports whether the profiler recorded the stack of the launch.
func (l *Launch) HasStack() bool { return len(l.Frames) > 0 || len(l.Names) > 0 }

// Sample is the place of a wave at one moment, or of several waves at the same place.
type Sample struct {
	Event int // index of Facts.Events
	PID   int // -1: unknown
	// Module is the index of the module in Facts.Modules; -1 where it is in none, or,
	// as Problem then says, in one that is not described.
	Module int
	// Kernel is the index in Facts.Kernels of the dispatched kernel; -1 where it is
	// unknown.
	Kernel int
	// Offset is the ELF virtual address in the module, where HasOffset; with InKernel
	// it counts from the first byte of Kernel instead, and Module is not set. Without
	// either PC is the address in the process.
	Offset              uint64
	HasOffset, InKernel bool
	PC                  uint64
	Problem             string
	Time                uint64 // nanoseconds of Facts.Clock, where HasTime
	HasTime             bool
	Weight              uint64 // the number of units of the event that it stands for
	// ActiveLanes of Lanes lanes executed, where HasLanes. Lanes is 0 where the width
	// of the wave is unknown.
	ActiveLanes, Lanes uint32
	HasLanes           bool
	State              int // index of Facts.States; -1: unknown
	// Instruction and Source are the file's own description of the place: the text of
	// the instruction, and its line, with the lines that it was inlined into; empty where
	// there is none.
	Instruction string
	Source      []Line
	// Launch is the launch of the wave; nil where it is unknown. LaunchIndex is the index
	// of Launch in Facts.Launches; -1 where it is not there.
	Launch      *Launch
	LaunchIndex int
}

// Line is a line of a source file.
type Line struct {
	File string
	Line int
}
