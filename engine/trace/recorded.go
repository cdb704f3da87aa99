// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"time"
)

// RecordOptions sets how often a process is sampled.
type RecordOptions struct {
	// Repeat is the number of moments; 0: as many as there are in Duration, or until Enough is
	// closed or the process ends.
	Repeat int
	Every  time.Duration // from one moment to the next
	// Duration ends the recording after so much time, however many moments were missed; 0: it does
	// not.
	Duration time.Duration
	// OnlyRunning leaves out threads that wait: a thread has a sample where it executes, or waits
	// for nothing except a processor. Threads that are left out are not stopped.
	OnlyRunning bool
	// Others are more processes of the same recording.
	Others []int
	// Children adds the processes that recorded ones have started, once they are noticed.
	Children bool
	// Threads are the IDs of the threads that are sampled, and stopped; none: all are.
	Threads []int
	// IsNative leaves out the frames of language runtimes. They are found while the threads stand
	// still.
	IsNative bool
	// MaxBytes bounds the recording; 0 for no bound.
	MaxBytes uint64
	// Enough, where it is not nil, ends the recording, complete, once it is closed.
	Enough <-chan struct{}
	// Progress, where it is not nil, is called after every moment, with the number of them. The
	// file then has the samples up to some 200 ms ago.
	Progress func(moments int)
}

// Recorded describes a recording.
type Recorded struct {
	PID     int
	Moments int // at which the process was stopped
	Samples int // of threads
	// Waiting is how often a thread was left out because it waited (RecordOptions.OnlyRunning).
	Waiting int
	// Missed is the number of moments that passed while an earlier one was copied.
	Missed int
	// Stopped is how long the threads stood still in all, and Longest the longest time at
	// one moment.
	Stopped, Longest time.Duration
	// Root is the directory that the paths of files are relative to, if the process has
	// other mounts; else "". It is valid as long as the recording process lives.
	Root string
	// Roots are such directories of all processes that have other mounts, by ID.
	Roots map[int]string
	// Problems are the reasons why the recording ended early, a sentence each.
	Problems []string
}
