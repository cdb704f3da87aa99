// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/term"
)

// defaultRecording is where perf record writes.
const defaultRecording = "perf.data"

// recordingOf returns the recording among the arguments; "" where only samples of accelerators are
// read.
func (f *profileFlags) recordingOf(args []string) string {
	switch {
	case len(args) > 0:
		return args[0]
	case len(f.gpu) > 0:
		return ""
	}
	f.isDefault = true
	f.reads(defaultRecording)
	return defaultRecording
}

// openInput opens standard input, or another pipe, as a recording; nil where the path is of a file
// that is no pipe.
func openInput(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch isFIFO := err == nil && info.Mode()&fs.ModeNamedPipe != 0; {
	case path != stdinName && !isPipe(path) && !isFIFO:
		return nil, nil
	case path != stdinName:
		return os.Open(path)
	case term.IsTerminal(int(os.Stdin.Fd())):
		return nil, usageError{errors.New("-: standard input is a terminal, expected a recording")}
	}
	return os.Stdin, nil
}

// noRecording completes the error for a recording that is not there.
func (f *profileFlags) noRecording(err error) error {
	if !f.isDefault || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return usageError{fmt.Errorf("profile: there is no ./%s: give a RECORDING, or have one made: `unwindd profile -- PROGRAM ARGS`, or `perf record --call-graph dwarf -- PROGRAM ARGS`", defaultRecording)}
}
