// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
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

// stopsOf returns how long the threads of a live process were stopped: all of them, and the longest one.
func stopsOf(t *engine.Target) (all, longest time.Duration, ok bool) {
	s, ok := t.Process().State().(interface {
		Stopped() (all, longest time.Duration)
	})
	if ok {
		all, longest = s.Stopped()
	}
	return all, longest, ok
}

// printStops prints with --verbose how long the threads of a live process were stopped.
func (g *globals) printStops(t *engine.Target) {
	if all, longest, ok := stopsOf(t); ok && g.verbose {
		messages.Printf("unwindd: process %d: %d threads were stopped for %v, the longest one for %v\n",
			t.Info().Facts.Process.ID, len(t.Threads()), all.Round(time.Microsecond), longest.Round(time.Microsecond))
	}
}
