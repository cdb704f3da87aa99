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
	own, t, err := e.openProcess(pid, nil)
	if err != nil || !own.managed.MayHaveFrames() {
		return own, err
	}
	return e.openStill(pid, own, t)
}

// openProcess opens a process. look is called while its threads stand still, if it is not nil.
func (e *Engine) openProcess(pid int, look func(*process.Target, *Target)) (own *Target, t *process.Target, err error) {
	attach := func(t *process.Target) {
		state, problems := target.Target(t), []string(nil)
		if path := e.options.DeviceCore; path != "" {
			state, problems = e.withNamedDevices(t, path)
		}
		own = e.Attach(state)
		own.SetInputProblems(problems)
	}
	options := e.processOptions()
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

// openStill opens a process with the state of its language runtimes. own is a copy without it, which
// is closed. First the state is read while the threads go on: which pages it is in is known then, plugins have started,
// and the rows and names of the code are known. Then the threads are stopped for as long as these pages are copied.
// Where others turn out to be needed, that is done again with them; in the end the threads stand
// still until all is read.
func (e *Engine) openStill(pid int, own *Target, t *process.Target) (*Target, error) {
	defer own.Close()
	ctx, cancel := context.WithTimeout(context.Background(), warmTime)
	defer cancel()
	t.ReadOn()
	own.readRuntimes(ctx)
	pages := t.Pages()
	for range copyAttempts {
		still, copied, err := e.openProcess(pid, func(t *process.Target, _ *Target) { t.Fetch(pages) })
		if err != nil {
			return nil, err
		}
		stacks := still.readRuntimes(ctx)
		missing := copied.Missing()
		if len(missing) == 0 || ctx.Err() != nil {
			still.ready = stacks
			return still, nil
		}
		pages = slices.Compact(slices.Sorted(slices.Values(append(pages, missing...))))
		_ = still.Close()
	}
	isLate := false
	still, _, err := e.openProcess(pid, func(t *process.Target, still *Target) {
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
	if ctx.Err() == nil {
		t.managed.ReadThreads(ctx, t.process.State())
	}
	if frames > maxReady || ctx.Err() != nil {
		return nil
	}
	return stacks
}

// RuntimesOf returns the names of the language runtimes that may know frames of a live process, by the
// files of its code. Its threads are not stopped: one that waits would look as if it executed.
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
