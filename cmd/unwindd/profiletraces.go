// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine"
)

// maxTraces bounds the files of other profilers in one profile: the ranks of a run.
const maxTraces = 1 << 12

// perfRecording is the kind of perf's own files.
const perfRecording = "a recording of perf"

// takeRecordings checks the arguments: a recording or a process, and further traces of other
// profilers.
func (f *profileFlags) takeRecordings(args []string) error {
	if slices.Contains(args, "") {
		return errors.New("profile: RECORDING has no name")
	}
	if len(args) > maxTraces {
		return fmt.Errorf("profile: %d files, expected at most %d", len(args), maxTraces)
	}
	if len(args) < 2 {
		return nil
	}
	for _, a := range args {
		if pid, ok := processID(a); ok {
			return fmt.Errorf("profile: process %d beside other arguments: expected it alone", pid)
		}
	}
	f.traces = args[1:]
	for _, a := range f.traces {
		if kind := engine.KindOf(a); kind.What == perfRecording {
			return fmt.Errorf("profile: %s is %s: expected one recording, and beside it traces of other profilers", a, kind.What)
		}
		f.reads(a)
	}
	return nil
}
