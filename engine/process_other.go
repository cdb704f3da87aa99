// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

import (
	"context"
	"errors"
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

var errNoProcesses = errors.New("reading living processes needs Linux: take a core (gcore PID) or a snapshot (unwindd snapshot PID -o FILE) there, and read it here")

// OpenProcess is an error: this system is not Linux.
func (e *Engine) OpenProcess(int) (*Target, error) { return nil, errNoProcesses }

// OpenProcesses opens none: this system is not Linux.
func (e *Engine) OpenProcesses(_ context.Context, pids []int, o OpenProcessesOptions) {
	for _, pid := range pids {
		o.Each(pid, nil, errNoProcesses)
	}
}

// RuntimesOf knows of none: this system is not Linux.
func (e *Engine) RuntimesOf(int) []string { return nil }

// RecordProcess is an error: this system is not Linux.
func (e *Engine) RecordProcess(context.Context, int, io.WriteSeeker, trace.RecordOptions) (trace.Recorded, error) {
	return trace.Recorded{}, errNoProcesses
}
