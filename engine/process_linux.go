// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/unwindd/unwindd/engine/internal/target/process"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// OpenProcess copies the registers and stacks of a live process, whose threads are
// stopped meanwhile; see process.Open, whose errors it returns.
func (e *Engine) OpenProcess(pid int) (*Target, error) {
	t, err := process.Open(pid, process.Options{
		Finder:   e.Finder(""),
		Describe: e.describe,
	})
	if err != nil {
		return nil, err
	}
	state, problems := target.Target(t), []string(nil)
	if path := e.options.DeviceCore; path != "" {
		state, problems = e.withNamedDevices(t, path)
	}
	own := e.Attach(state)
	own.SetInputProblems(problems)
	own.readPerfMaps()
	return own, nil
}

// RecordProcess samples a live process, and writes the samples to file, a recording that
// Profile reads; see process.Record, whose errors it returns.
func (e *Engine) RecordProcess(ctx context.Context, pid int, file io.WriteSeeker, o trace.RecordOptions) (trace.Recorded, error) {
	files := process.Options{
		Describe: e.describe,
	}
	return process.Record(ctx, pid, file, files, o)
}
