// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/host"
)

// recording is a recording that a profile is made of: a file of the user, or one that was made now.
type recording struct {
	path     string
	file     *os.File    // a temporary file without a name; nil: it is the user's
	kept     *outputFile // file, where the recording is kept
	subject  string      // the profile's name, where the file is temporary
	problems []string
	// wasEnded is true where Ctrl-C ended the recording.
	wasEnded bool
}

// newRecording makes the file of a recording.
func newRecording(subject *recordSubject, keep string) (r recording, err error) {
	r.subject = subject.name()
	if keep != "" {
		if r.kept, err = createOutput(keep, false); err != nil {
			return r, fmt.Errorf("--keep: %w", err)
		}
		if !r.kept.isPending {
			return r, usageError{fmt.Errorf("--keep %s: expected a regular file", keep)}
		}
		r.file = r.kept.File
	} else if r.file, err = os.CreateTemp("", "unwindd-*.data"); err != nil {
		return r, err
	} else {
		// Without a name it is gone however this process ends.
		_ = os.Remove(r.file.Name())
	}
	r.path = fmt.Sprintf("/proc/self/fd/%d", r.file.Fd())
	return r, nil
}

// keep gives a recording that is kept its name.
func (r *recording) keep() error {
	if r.kept == nil {
		return nil
	}
	kept := r.kept
	r.path, r.file, r.kept = kept.path, nil, nil
	return kept.finish(nil)
}

// remove removes a temporary recording.
func (r *recording) remove() {
	switch {
	case r.kept != nil:
		_ = r.kept.abandon()
	case r.file != nil:
		name := r.file.Name()
		_ = r.file.Close()
		_ = os.Remove(name) // Windows removes no open file
	}
	r.file, r.kept = nil, nil
}

// describe names the subject in the profile, and adds the problems of recording.
func (r *recording) describe(p *trace.Profile) {
	if r.file != nil {
		p.Path = r.subject
		for i, problem := range p.Problems {
			p.Problems[i] = strings.ReplaceAll(problem, r.path, r.subject)
		}
	}
	p.Problems = append(p.Problems, r.problems...)
}

// record records a subject, and keeps the recording where it is asked to.
func (f *profileFlags) record(ctx context.Context, e *engine.Engine, subject *recordSubject) (r recording, err error) {
	if r, err = newRecording(subject, f.keep); err != nil {
		return r, err
	}
	if err = f.recordNow(ctx, e, subject, &r); err == nil {
		err = r.keep()
	}
	if err != nil {
		r.remove()
	}
	return r, err
}

// recordLive stops the threads of living processes again and again. A program is started for that.
func (f *profileFlags) recordLive(ctx context.Context, e *engine.Engine, subject *recordSubject, r *recording) error {
	if len(subject.program) == 0 {
		return f.recordProcesses(ctx, e, subject, r)
	}
	program, err := startChild(subject.path, subject.program, true)
	if err != nil {
		return statusError{err, exitNotExecutable}
	}
	defer f.endProgram(program, subject)
	started := recordSubject{pids: []int{program.cmd.Process.Pid}, isStarted: true}
	if err := f.recordProcesses(ctx, e, &started, r); err != nil {
		return fmt.Errorf("%s: nothing of it was recorded: %w", subject.program[0], err)
	}
	return nil
}

// recordProcesses stops the threads of processes again and again, and prints figures with --verbose.
func (f *profileFlags) recordProcesses(ctx context.Context, e *engine.Engine, subject *recordSubject, r *recording) error {
	o := trace.RecordOptions{
		Repeat: f.repeat, Every: f.interval(), Duration: f.duration, OnlyRunning: !f.idle, Threads: f.tids, MaxBytes: spareBytes(r.file),
		Others: subject.pids[1:], Children: subject.isStarted, IsNative: f.native,
	}
	if !f.changed["repeat"] && (f.duration > 0 || !subject.isShort) {
		o.Repeat = 0
	}
	view := f.newLiveView(ctx, e, subject.words(), r)
	defer view.end()
	s := newSampling(subject.pids[0], o.Repeat)
	if view != nil || !f.live {
		s.out = nil // no line too
	}
	o.Enough, o.Progress = s.enough, s.progress
	begun := time.Now()
	done, err := e.RecordProcess(ctx, subject.pids[0], r.file, o)
	s.end()
	view.end()
	if err != nil {
		return err
	}
	r.wasEnded = s.isEnded()
	f.describeLive(r, &done, time.Since(begun))
	for pid, root := range done.Roots {
		if _, isOwn := f.roots[pid]; !isOwn {
			f.roots[pid] = root
		}
	}
	return nil
}

// endProgram waits for a program that was recorded. One that goes on when the recording has ended is
// told to end, as perf does.
func (f *profileFlags) endProgram(c *child, subject *recordSubject) {
	close(c.mayWait)
	pause := time.Second // its end is seen before it is reported
	select {
	case <-c.ended:
	case <-time.After(pause):
		c.tell(syscall.SIGTERM)
		select {
		case <-c.ended:
		case <-time.After(childPatience):
			messages.Printf("unwindd: %s goes on: SIGTERM did not end it within %v\n", subject.program[0], childPatience)
		}
	}
	f.sayOutcome(c, subject)
}

// describeLive adds the problems of a recording by stops, and prints its figures with --verbose.
func (f *profileFlags) describeLive(r *recording, done *trace.Recorded, took time.Duration) {
	r.problems = done.Problems
	if done.Missed > 0 {
		r.problems = append(r.problems, fmt.Sprintf("process %d: %d of %d moments were missed, because looking at its threads takes longer than %v: samples after them stand for more time",
			done.PID, done.Missed, done.Missed+done.Moments, f.interval()))
	}
	if f.verbose {
		messages.Printf("unwindd: process %d: %d samples at %d moments in %v; its threads were stopped for %v in all, for %v at most; %d times a thread waited and has no sample\n",
			done.PID, done.Samples, done.Moments, took.Round(time.Millisecond), done.Stopped.Round(time.Microsecond), done.Longest.Round(time.Microsecond), done.Waiting)
	}
}

// errNothingRecorded is the error for a recording that ended before there was a sample.
var errNothingRecorded = errors.New("it was ended before there was a sample")

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
