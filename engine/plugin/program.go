// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/unwindd/unwindd/internal/confine"
)

// Program is a confined program other than a plugin: it reads its input, writes its
// output and ends. It is confined as a vendor's plugin is, and may not write files.
type Program struct {
	Path  string
	Args  []string // without its name
	Input []byte   // its standard input
	// InputIsFile means that the program seeks in its standard input, which is a file in memory
	// then. Linux has such files.
	InputIsFile bool
	// MaxOutput bounds its standard output and its standard error, each, in bytes. A
	// program that writes more is killed.
	MaxOutput int
	// Deadline is the processor time that it may use, and WallDeadline the time on the
	// clock until it must have ended.
	Deadline, WallDeadline time.Duration
}

// Output is the output of a Program and its exit status.
type Output struct {
	Stdout, Stderr []byte
	Status         int // its exit status
}

// errFlood is the reason that a program was killed that wrote too much.
var errFlood = errors.New("wrote too much")

// Run runs a program. The error tells the user why there is no usable output, without the
// program's name: it could not be started, was killed by a signal, wrote too much or took
// too long. An exit status other than 0 is not an error.
func (m *Manager) Run(ctx context.Context, p Program) (*Output, error) {
	if m.self == "" {
		return nil, errors.New("could not be started: Options.Self, the unwindd executable that sandboxes it, is not set")
	}
	path, err := filepath.Abs(p.Path)
	if err != nil {
		return nil, err
	}
	c := newChild(confine.DataLimit)
	c.hasInput = true
	if p.InputIsFile {
		c.inputFile = p.Input
	}
	l := launch{self: m.self, build: m.build, isThis: isThisExecutable(m.self), command: append([]string{path}, p.Args...)}
	c.prepare(&l, "", nil)
	limit := deadline{p.Deadline, p.WallDeadline}
	limited, release := limit.limit(ctx, c.processorTime)
	defer release()
	if err := c.Start(limited); err != nil {
		return nil, fmt.Errorf("could not be started: %w", err)
	}
	stop := context.AfterFunc(limited, func() { _ = c.Kill(context.Background()) })
	defer stop()
	out, err := c.talk(&p)
	said := c.sandbox()
	if len(said.Missing) > 0 {
		m.logger.Warn("the sandbox is incomplete", "program", path, "missing", said.Missing)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case said.Error != "":
		return nil, errors.New(clip(printable(said.Error)))
	case errors.Is(err, errFlood):
		return nil, fmt.Errorf("wrote more than %d bytes, and was killed", p.MaxOutput)
	case isOutOfTime(limited):
		return nil, fmt.Errorf("did not end within %s", limit.passed(limited))
	case c.state == nil || c.state.Signaled() || c.excess != "":
		return nil, errors.New(c.died())
	}
	out.Status = c.state.ExitStatus()
	return out, nil
}

// talk writes a program's input and reads its output until it has ended. It leaves
// nothing of the program behind.
func (c *child) talk(p *Program) (*Output, error) {
	var out Output
	var errs [2]error
	var wg sync.WaitGroup
	if c.stdin != nil {
		wg.Go(func() {
			_, _ = c.stdin.Write(p.Input) // a program need not read all of its input
			c.stdin.Close()
		})
	}
	for i, end := range []struct {
		pipe   *os.File
		output *[]byte
	}{{c.stdout, &out.Stdout}, {c.stderr, &out.Stderr}} {
		wg.Go(func() {
			*end.output, errs[i] = readAtMost(end.pipe, p.MaxOutput)
			if errs[i] != nil {
				_ = c.Kill(context.Background())
			}
		})
	}
	<-c.exited
	// A dead process writes nothing more: others that have its pipes open are not waited
	// for.
	late := time.Now().Add(pipeGrace)
	if c.stdin != nil {
		_ = c.stdin.SetWriteDeadline(time.Now())
	}
	_ = c.stdout.SetReadDeadline(late)
	_ = c.stderr.SetReadDeadline(late)
	_ = c.report.SetReadDeadline(late)
	wg.Wait()
	c.stdout.Close()
	c.stderr.Close()
	return &out, errors.Join(errs[:]...)
}

// readAtMost reads to the end. The error is errFlood if there are more than most bytes.
func readAtMost(r io.Reader, most int) ([]byte, error) {
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r, int64(most)+1))
	switch {
	case n > int64(most):
		return nil, errFlood
	case errors.Is(err, os.ErrDeadlineExceeded):
		return b.Bytes(), nil
	}
	return b.Bytes(), err
}
