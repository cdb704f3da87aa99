// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"time"
)

// RecordOptions sets how often a process is sampled.
type RecordOptions struct {
	Repeat int           // the number of moments
	Every  time.Duration // from one moment to the next
	// MaxBytes bounds the recording; 0 for no bound.
	MaxBytes uint64
	// Enough, where it is not nil, ends the recording, complete, once it is closed.
	Enough <-chan struct{}
	// Progress, where it is not nil, is called after every moment, with the number of them.
	Progress func(moments int)
}

// Recorded describes a recording.
type Recorded struct {
	PID     int
	Moments int // at which the process was stopped
	Samples int // of threads
	// Missed is the number of moments that passed while an earlier one was copied.
	Missed int
	// Stopped is how long the threads stood still in all, and Longest the longest time at
	// one moment.
	Stopped, Longest time.Duration
	// Root is the directory that the paths of files are relative to, if the process has
	// other mounts; else "". It is valid as long as the recording process lives.
	Root string
	// Problems are the reasons why the recording ended early, a sentence each.
	Problems []string
}
