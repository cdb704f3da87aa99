// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"
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
func (e *Engine) openProcess(pid int, look func(*Target)) (own *Target, t *process.Target, err error) {
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
			look(own)
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
	stillTime = 2 * time.Second
)

// openStill opens a process with the state of its language runtimes. own is a copy without it, which
// is closed. The state is read twice: once while the threads go on, so that the second time, when they
// stand still, plugins have started, and the rows and names of the code are known.
func (e *Engine) openStill(pid int, own *Target, t *process.Target) (*Target, error) {
	defer own.Close()
	warm, cancel := context.WithTimeout(context.Background(), warmTime)
	defer cancel()
	t.ReadOn()
	own.readRuntimes(warm)
	isLate := false
	still, _, err := e.openProcess(pid, func(still *Target) {
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

// readRuntimes reads what language runtimes know of the threads.
func (t *Target) readRuntimes(ctx context.Context) {
	for range t.Stacks(ctx) {
		continue
	}
	t.managed.ReadThreads(ctx, t.process.State())
}

// RuntimesOf returns the names of the language runtimes that may know frames of a live process.
func (e *Engine) RuntimesOf(pid int) []string {
	if len(e.runtimes()) == 0 {
		return nil
	}
	own, _, err := e.openProcess(pid, nil)
	if err != nil {
		return nil // recording it says why
	}
	defer own.Close()
	return own.managed.Names()
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
