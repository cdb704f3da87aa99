// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/host"
)

// processID parses a name on the command line as the ID of a live process. A file whose
// name is a number is no process.
func processID(name string) (pid int, ok bool) {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return 0, false
	}
	_, err = os.Lstat(name)
	return pid, err != nil
}

// printStops prints with --verbose how long the threads of a live process were stopped.
func (g *globals) printStops(t *engine.Target) {
	if s, ok := t.Process().State().(interface {
		Stopped() (all, longest time.Duration)
	}); ok && g.verbose {
		all, longest := s.Stopped()
		messages.Printf("unwindd: process %d: %d threads were stopped for %v, the longest one for %v\n",
			t.Info().Facts.Process.ID, len(t.Threads()), all.Round(time.Microsecond), longest.Round(time.Microsecond))
	}
}

// Defaults of sampling a live process: for a second.
const (
	defaultRepeat = 100
	defaultEvery  = 10 * time.Millisecond
)

// recording is a recording that a profile is made of: a file of the user, or a temporary
// one of a live process.
type recording struct {
	path     string
	file     *os.File // a temporary file without a name; nil: it is the user's
	process  string   // the name of the live process
	problems []string
}

// remove removes a temporary recording.
func (r *recording) remove() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

// describe names the process in a profile of it.
func (r *recording) describe(p *trace.Profile) {
	if r.file == nil {
		return
	}
	p.Path = r.process
	for i, problem := range p.Problems {
		p.Problems[i] = strings.ReplaceAll(problem, r.path, r.process)
	}
	p.Problems = append(p.Problems, r.problems...)
}

// record records a live process, and prints figures with --verbose.
func (f *profileFlags) record(ctx context.Context, e *engine.Engine, pid int) (r recording, err error) {
	file, err := os.CreateTemp("", "unwindd-*.data")
	if err != nil {
		return r, err
	}
	// Without a name it is gone however this process ends.
	_ = os.Remove(file.Name())
	r = recording{path: fmt.Sprintf("/proc/self/fd/%d", file.Fd()), file: file, process: fmt.Sprintf("/proc/%d", pid)}
	done, err := e.RecordProcess(ctx, pid, file, trace.RecordOptions{Repeat: f.repeat, Every: f.every, MaxBytes: spareBytes(file)})
	if err != nil {
		r.remove()
		_ = os.Remove(file.Name()) // Windows removes no open file
		return r, err
	}
	r.problems = done.Problems
	if done.Missed > 0 {
		r.problems = append(r.problems, fmt.Sprintf("process %d: %d of %d moments were missed, because looking at its threads takes longer than %v: samples after them stand for more time",
			pid, done.Missed, done.Missed+done.Moments, f.every))
	}
	if _, isOwn := f.roots[pid]; done.Root != "" && !isOwn {
		f.roots[done.PID] = done.Root
	}
	if f.verbose {
		messages.Printf("unwindd: process %d: %d samples at %d moments; its threads were stopped for %v in all, for %v at most\n",
			pid, done.Samples, done.Moments, done.Stopped.Round(time.Microsecond), done.Longest.Round(time.Microsecond))
	}
	return r, nil
}

// maxRecording bounds a recording of a live process: 100 threads with 5 kB of stack each
// make 50 MB a second at 100 moments a second.
const maxRecording = 16 << 30

// spareBytes returns half of the free bytes of a file's disk, bounded.
func spareBytes(file *os.File) uint64 {
	free, ok := host.FreeBytes(file)
	if !ok {
		return maxRecording
	}
	return min(maxRecording, free/2)
}
