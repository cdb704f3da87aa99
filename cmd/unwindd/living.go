package main

import (
	"os"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine"
)

// processID is the ID of a living process that a name on the command line is. A file whose
// name is a number is taken for the file.
func processID(name string) (pid int, ok bool) {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return 0, false
	}
	_, err = os.Lstat(name)
	return pid, err != nil
}

// sayStops says with --verbose how long the threads of a living process were stopped.
func (g *globals) sayStops(t *engine.Target) {
	if s, ok := t.State().(interface {
		Stopped() (all, longest time.Duration)
	}); ok && g.verbose {
		all, longest := s.Stopped()
		messages.Printf("unwindd: process %d: %d threads were stopped for %v, the longest one for %v\n",
			t.Info().Facts.Process.ID, len(t.Threads()), all.Round(time.Microsecond), longest.Round(time.Microsecond))
	}
}
