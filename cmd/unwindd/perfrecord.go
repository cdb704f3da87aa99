// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/engine"
)

// errNotBegun is wrapped by the error for perf that ended before it recorded anything.
var errNotBegun = errors.New("perf recorded nothing")

// planOf returns how perf records a subject; nil where the live recorder does, and the reason.
func (f *profileFlags) planOf(ctx context.Context, e *engine.Engine, subject *recordSubject) (plan *perfPlan, why string, err error) {
	others := f.changedAmong(liveOnly)
	switch {
	case f.recorder == "live":
		return nil, "--recorder live", nil
	case f.recorder == "perf":
	case len(others) > 0:
		return nil, others[0], nil
	case subject.isShort || f.idle:
		return nil, "", nil
	case !f.native:
		if names := subject.runtimes(e); len(names) > 0 {
			return nil, "for the frames of " + strings.Join(names, ", ") + ", which perf does not record", nil
		}
	}
	plan, err = planPerf(ctx, subject)
	if err != nil && f.recorder != "perf" {
		plan, why, err = nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("--recorder perf: %w", err)
	}
	return plan, why, nil
}

// runtimes returns the names of the language runtimes that may know frames of a subject.
func (s *recordSubject) runtimes(e *engine.Engine) (names []string) {
	if len(s.program) > 0 {
		return e.RuntimesIn(s.path)
	}
	for _, pid := range s.pids {
		names = append(names, e.RuntimesOf(pid)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// recordPerf has perf record a subject.
func (f *profileFlags) recordPerf(ctx context.Context, e *engine.Engine, plan *perfPlan, subject *recordSubject, r *recording) error {
	f.openRecordedRoots(subject)
	// perf opens the file by this path, so that the program does not inherit it.
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.file.Fd())
	perf, err := startChild(plan.path, append([]string{"perf"}, plan.arguments(subject, &f.recordFlags, path)...), len(subject.program) > 0)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	close(perf.mayWait)
	interrupted := make(chan struct{})
	take := func(signal syscall.Signal) bool {
		if signal != syscall.SIGINT || isClosed(interrupted) {
			return false
		}
		close(interrupted)
		return true
	}
	signalTaker.Store(&take)
	defer signalTaker.Store(nil)
	duration := f.duration
	if len(subject.program) == 0 {
		duration = 0 // perf itself ends with the program that takes so long
	}
	view := f.newLiveView(ctx, e, subject.words(), r)
	awaitEnd(perf, r.file, duration, interrupted)
	view.end()
	r.wasEnded = isClosed(interrupted)
	info, err := r.file.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() == 0 && r.wasEnded:
		return statusError{errNothingRecorded, exitSignal + int(syscall.SIGINT)}
	case info.Size() == 0:
		return fmt.Errorf("%w: %s", errNotBegun, perf.reason())
	}
	if len(subject.program) > 0 {
		f.sayOutcome(perf, subject)
	}
	return nil
}

// beginPause is how often it is looked whether perf has begun.
const beginPause = 5 * time.Millisecond

// awaitEnd waits for perf to end: by itself, by SIGINT, or after the duration. One that does not end
// then is killed. The duration begins with the program: before that perf prepares.
func awaitEnd(c *child, file *os.File, duration time.Duration, interrupted <-chan struct{}) {
	tick := time.NewTicker(beginPause)
	defer tick.Stop()
	var over <-chan time.Time
	for isWaiting := true; isWaiting; {
		select {
		case <-c.ended:
			return
		case <-interrupted:
			isWaiting = false
		case <-over:
			isWaiting = false
		case <-tick.C:
			if info, err := file.Stat(); err == nil && info.Size() > 0 && hasProgram(c.cmd.Process.Pid) {
				tick.Stop()
				if duration > 0 {
					over = time.After(duration)
				}
			}
		}
	}
	// A terminal has sent the signal to it, too: a second one does nothing.
	c.tell(syscall.SIGINT)
	select {
	case <-c.ended:
	case <-time.After(childPatience):
		messages.Printf("unwindd: %s did not end for %v: it is killed, and what it wrote until then is read\n", c.cmd.Args[0], childPatience)
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// hasProgram reports whether a child of perf executes another program than perf: it is forked long
// before. Where the kernel does not list children it is assumed.
func hasProgram(perf int) bool {
	dir := fmt.Sprintf("/proc/%d", perf)
	list, err := os.ReadFile(fmt.Sprintf("%s/task/%d/children", dir, perf))
	if err != nil {
		return true
	}
	own, _ := os.ReadFile(dir + "/cmdline")
	for child := range strings.FieldsSeq(string(list)) {
		if line, err := os.ReadFile("/proc/" + child + "/cmdline"); err == nil && !bytes.Equal(line, own) {
			return true
		}
	}
	return false
}

// sayOutcome says how the program ended, where it failed by itself.
func (f *profileFlags) sayOutcome(c *child, subject *recordSubject) {
	if text := c.outcome(subject.program[0]); text != "" {
		messages.Printf("unwindd: %s\n", text)
	}
}

// reason returns the words of a child that failed.
func (c *child) reason() string {
	text := strings.Join(strings.Fields(c.said.String()), " ")
	if text == "" && c.waitErr != nil {
		text = c.waitErr.Error()
	}
	return text
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// openRecordedRoots has the files of processes with mounts of their own looked up there, also when they
// have ended.
func (f *profileFlags) openRecordedRoots(subject *recordSubject) {
	ours, err := os.Stat("/proc/self/ns/mnt")
	for _, pid := range subject.pids {
		theirs, theirErr := os.Stat(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if _, isOwn := f.roots[pid]; isOwn || err != nil || theirErr != nil || os.SameFile(ours, theirs) {
			continue
		}
		if root, err := os.Open(fmt.Sprintf("/proc/%d/root", pid)); err == nil {
			f.rootFiles = append(f.rootFiles, root) // open as long as the process lives
			f.roots[pid] = fmt.Sprintf("/proc/self/fd/%d", root.Fd())
		}
	}
}

// recordNow records by perf, or by stopping threads where perf cannot.
func (f *profileFlags) recordNow(ctx context.Context, e *engine.Engine, subject *recordSubject, r *recording) error {
	plan, why, err := f.planOf(ctx, e, subject)
	if err != nil {
		return err
	}
	if plan != nil {
		messages.Printf("unwindd: recording %s %s\n", subject.words(), plan.words(&f.recordFlags))
		err := f.recordPerf(ctx, e, plan, subject, r)
		if !errors.Is(err, errNotBegun) || f.recorder == "perf" {
			return err
		}
		why = err.Error()
	}
	if !subject.isShort {
		if why != "" {
			why = " (" + why + ")"
		}
		messages.Printf("unwindd: recording %s by stopping its threads every %v%s\n", subject.words(), f.interval(), why)
	}
	return f.recordLive(ctx, e, subject, r)
}
