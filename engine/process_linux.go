// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/process"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// OpenProcess copies the registers and stacks of a live process, whose threads are
// stopped meanwhile; see process.Open, whose errors it returns. Where the process has a language
// runtime, the threads stand still until the runtime's state was read, too.
func (e *Engine) OpenProcess(pid int) (*Target, error) {
	own, t, err := e.openProcess(pid, nil, nil)
	if err != nil || !own.hasState() {
		return own, err
	}
	defer own.Close()
	ctx, cancel := context.WithTimeout(context.Background(), warmTime)
	defer cancel()
	return e.openStill(ctx, pid, own.warm(ctx, t))
}

// hasState reports whether more than stacks is copied of a living process: the state of its language runtimes.
func (t *Target) hasState() bool {
	return t.managed.MayHaveFrames() || t.engine.options.Goroutines && t.managed.MayHaveThreads("")
}

// openProcess opens a process. look is called while its threads stand still, if it is not nil. m is its part
// where several processes are stopped together.
func (e *Engine) openProcess(pid int, m *process.Member, look func(*process.Target, *Target)) (own *Target, t *process.Target, err error) {
	attach := func(t *process.Target) {
		state, problems := target.Target(t), []string(nil)
		if path := e.options.DeviceCore; path != "" {
			state, problems = e.withNamedDevices(t, path)
		}
		own = e.Attach(state)
		own.SetInputProblems(problems)
	}
	options := e.processOptions()
	options.Member = m
	if look != nil {
		options.Look = func(t *process.Target) {
			attach(t)
			look(t, own)
		}
	}
	if t, err = process.Open(pid, options); err != nil {
		return nil, nil, err
	}
	if own == nil {
		attach(t)
	}
	own.readPerfMaps()
	return own, t, nil
}

func (e *Engine) processOptions() process.Options {
	return process.Options{Finder: e.Finder(""), Describe: e.describe}
}

const (
	// warmTime bounds the reading of the state of runtimes while the threads go on.
	warmTime = 20 * time.Second
	// stillTime bounds it while they stand still.
	stillTime = 5 * time.Second
	// copyAttempts is how often the threads are stopped for a copy of the pages that the state is in, before
	// they stand still until it is read.
	copyAttempts = 3
)

// warm reads the state of the language runtimes of a process while its threads go on, and returns the pages
// that it is in. Plugins have started then, and the rows and names of the code are known.
func (t *Target) warm(ctx context.Context, copied *process.Target) (pages []uint64) {
	copied.ReadOn()
	t.readRuntimes(ctx)
	return copied.Pages()
}

// openStill opens a process with the state of its language runtimes, which was in some pages while the threads
// went on. The threads are stopped for as long as these pages are copied.
// Where others turn out to be needed, that is done again with them; in the end the threads stand
// still until all is read.
func (e *Engine) openStill(ctx context.Context, pid int, pages []uint64) (*Target, error) {
	for range copyAttempts {
		still, copied, err := e.openWith(pid, pages, nil)
		if err != nil {
			return nil, err
		}
		missing := still.readStill(ctx, copied)
		if len(missing) == 0 {
			return still, nil
		}
		pages = withPages(pages, missing)
		_ = still.Close()
	}
	isLate := false
	still, _, err := e.openProcess(pid, nil, func(t *process.Target, still *Target) {
		t.Fetch(pages)
		ctx, cancel := context.WithTimeout(context.Background(), stillTime)
		defer cancel()
		still.readRuntimes(ctx)
		isLate = ctx.Err() != nil
	})
	if err == nil && isLate {
		still.SetInputProblems(append(still.InputProblems(),
			fmt.Sprintf("process %d: the state of its language runtimes was not read within %v, for which its threads stood still: frames of them are missing", pid, stillTime)))
	}
	return still, err
}

// openWith opens a process with pages of its memory. m is as of openProcess.
func (e *Engine) openWith(pid int, pages []uint64, m *process.Member) (*Target, *process.Target, error) {
	return e.openProcess(pid, m, func(t *process.Target, _ *Target) { t.Fetch(pages) })
}

// readStill reads the state of the language runtimes from the copy, and returns the addresses of pages that
// it lacks. There are none where there is no time left to read them.
func (t *Target) readStill(ctx context.Context, copied *process.Target) (missing []uint64) {
	stacks := t.readRuntimes(ctx)
	if missing = copied.Missing(); len(missing) == 0 || ctx.Err() != nil {
		t.ready = stacks
		return nil
	}
	return missing
}

// withPages returns pages and others, in ascending order.
func withPages(pages, others []uint64) []uint64 {
	return slices.Compact(slices.Sorted(slices.Values(append(pages, others...))))
}

// maxReady bounds the frames of the stacks that are kept for who needs them first.
const maxReady = 1 << 18

// readRuntimes reads what language runtimes know of the threads. It returns the stacks; nil where they are
// many, or not all were walked.
func (t *Target) readRuntimes(ctx context.Context) (stacks []*trace.Stack) {
	frames := 0
	for s := range t.Stacks(ctx) {
		if frames += len(s.Frames); frames <= maxReady {
			stacks = append(stacks, s)
		}
	}
	switch {
	case ctx.Err() != nil:
	case t.engine.options.Goroutines:
		t.walkScheduled(ctx)
	default:
		t.managed.ReadThreads(ctx, t.process.State())
	}
	if frames > maxReady || ctx.Err() != nil {
		return nil
	}
	return stacks
}

// walkScheduled walks the stacks of the threads that language runtimes schedule, for the memory in which they are.
func (t *Target) walkScheduled(ctx context.Context) {
	all := t.WithGoroutines(ctx)
	defer all.Close()
	for range all.Stacks(ctx) {
	}
}

// RuntimesOf returns the names of the language runtimes that may know frames of a live process, with
// Options.Goroutines also threads of it, by the files of its code. Its threads are not stopped: one that waits would look as if it executed.
func (e *Engine) RuntimesOf(pid int) []string {
	if len(e.runtimes()) == 0 {
		return nil
	}
	files, err := process.CodeFiles(pid)
	if err != nil {
		return nil // recording it says why
	}
	return e.runtimesInFiles(files)
}

// RecordProcess samples a live process, and writes the samples to file, a recording that
// Profile reads; see process.Record, whose errors it returns.
func (e *Engine) RecordProcess(ctx context.Context, pid int, file io.WriteSeeker, o trace.RecordOptions) (trace.Recorded, error) {
	files := process.Options{
		Describe: e.describe,
	}
	if o.IsNative || len(e.runtimes()) == 0 {
		return process.Record(ctx, pid, file, files, nil, o)
	}
	m, err := e.newRuntimeMoments(ctx)
	if err != nil {
		return trace.Recorded{}, err
	}
	return process.Record(ctx, pid, file, files, m, o)
}
