// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/engine"
)

// jobInput is the input of a job: a file of the user, or a temporary one without a name.
type jobInput struct {
	*os.File
	name string // in the report
	path string // by which it can be opened
}

// input opens the input for a target of the command line. Standard input is copied, and a
// living process has its snapshot taken.
func (f *submitFlags) input(ctx context.Context, e *engine.Engine, name string) (*jobInput, error) {
	if pid, ok := processID(name); ok {
		return temporaryInput(name+".snapshot", func(file *os.File) error { return writeProcess(ctx, e, pid, file) })
	}
	if name == stdinName || isPipe(name) {
		return temporaryInput(filepath.Base(name), func(file *os.File) error { return f.copyPipe(name, file) })
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &jobInput{file, filepath.Base(name), name}, nil
}

// temporaryInput makes an input of what write writes.
func temporaryInput(name string, write func(*os.File) error) (*jobInput, error) {
	file, err := os.CreateTemp("", "unwindd-*.job")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // so that it is gone however this process ends
	if err := write(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &jobInput{file, name, fmt.Sprintf("/proc/self/fd/%d", file.Fd())}, nil
}

// writeProcess writes a snapshot of a living process.
func writeProcess(ctx context.Context, e *engine.Engine, pid int, file *os.File) error {
	t, err := e.OpenProcess(pid)
	if err != nil {
		return err
	}
	defer t.Close()
	s, err := t.Snapshot(ctx, engine.SnapshotOptions{})
	if err == nil {
		err = s.Unwalked
	}
	if err != nil {
		return err
	}
	return s.Write(file)
}

// copyPipe copies standard input, or another pipe of this process.
func (f *inputFlags) copyPipe(name string, file *os.File) error {
	in := os.Stdin
	if name != stdinName {
		var err error
		if in, err = os.Open(name); err != nil {
			return err
		}
		defer in.Close()
	}
	return f.copyFrom(in, name, file)
}

// copyFrom copies an open pipe, as far as the bound of packed targets and the disk go.
func (f *inputFlags) copyFrom(pipe io.Reader, name string, file *os.File) error {
	most := int64(spareBytes(file)) //nolint:gosec // bounded
	if f.maxUnpacked > 0 {
		most = min(most, int64(f.maxUnpacked)) //nolint:gosec // bounded by its Set
	}
	n, err := io.Copy(file, io.LimitReader(pipe, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%s has more than the %d bytes that there is room for: --max-unpacked", name, most)
	}
	return err
}

// ofTarget returns an error that begins with the name of its target.
func ofTarget(name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) && path.Path == name {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
