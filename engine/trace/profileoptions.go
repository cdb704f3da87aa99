// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"io"
	"os"
	"time"
)

// ProfilePart is one of the parts that the samples of a recording are divided into. All of them have
// equally many samples, give or take one.
type ProfilePart struct{ Index, Count int }

// ErrPart is wrapped by the errors for data that is no part of a recording.
var ErrPart = errors.New("not a part of the recording")

// ProfileOptions say how a recording is walked.
type ProfileOptions struct {
	// Jobs is how many goroutines walk; 0: one for each CPU.
	Jobs int
	// Kallsyms is a file like /proc/kallsyms, which names the kernel's code; "": the file in
	// the recording's directory, where it is one with such a file.
	Kallsyms string
	// Roots are directories under which the files of processes are looked up, in place of
	// engine.Options.Sysroot, by process ID. Children of such a process have its root.
	Roots map[int]string
	// PerfMaps are the maps of the code that processes made while they ran, by process ID, as
	// runtimes write them to /tmp/perf-PID.map. They may be of any owner.
	PerfMaps map[int]string
	// GPU are files of samples of accelerators, which join the profile: of any known format,
	// recognised by their contents (docs/profile.md, "Accelerators").
	GPU []string
	// Traces are further files with stacks that other profilers wrote, as Engine.Profile reads
	// them: the traces of the other ranks of a run. They join the profile.
	Traces []string
	// Objects are code objects of accelerators, or files that they are in. They replace objects
	// that the profiler did not keep or name.
	Objects []string
	// JoinWindow is how far a sample of the CPU may be from a launch to be taken for its stack,
	// where none was taken at the launch itself; 0: none is.
	JoinWindow time.Duration
	// Annotate are names of functions to annotate: as they are printed, or without parameters,
	// or as they are called in the source. A name that no function has is an error.
	Annotate []string
	// Parts are the data that engine.Engine.ProfilePart wrote of each part of the recording, in
	// their order: no sample is walked, and the profile is the same as if all were. Errors of data
	// that is no part of the recording wrap ErrPart. None: the samples are walked here.
	Parts []io.Reader
	// JoinDevice makes samples of accelerators that differ in their times only one, with a count
	// (ProfileSample.More), so that memory is in proportion to what differs. The first and the last
	// time of each event stay.
	JoinDevice bool
	// Size is how many bytes of the file are the recording, from the first on; 0: all.
	Size int64
	// Input, where it is not nil, is the open file that the recording is read from: a regular file,
	// or a pipe, which is read to its end. Then the path is its name in messages.
	Input *os.File
	// Progress is called with how many samples and dispatches are done, of how many in all;
	// nil: it is not called. It is called for every few samples, by one goroutine at a time.
	// done never decreases, and the files may lie about the total.
	Progress func(done, total uint64)
}
