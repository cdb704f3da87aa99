// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/remote"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// A Job is one thing to be done with what somebody sent. One member is set.
type Job struct {
	Stack     *Stack     `json:",omitempty"`
	Profile   *Profile   `json:",omitempty"`
	Snapshot  *Snapshot  `json:",omitempty"`
	Symbolize *Symbolize `json:",omitempty"`
	Identify  *Identify  `json:",omitempty"`
	Evaluate  *Evaluate  `json:",omitempty"`
	Walk      *Walk      `json:",omitempty"`
}

// Name is what kind of job it is, in the word of its command.
func (j *Job) Name() string {
	switch {
	case j.Stack != nil:
		return "stack"
	case j.Profile != nil:
		return "profile"
	case j.Snapshot != nil:
		return "snapshot"
	case j.Symbolize != nil:
		return "symbolize"
	case j.Evaluate != nil:
		return "eval"
	case j.Walk != nil:
		return "walk"
	}
	return "objects"
}

// CheckInput says what has no meaning with something to read, or, where hasInput is false,
// without. Only an expression can be evaluated in a state of its own.
func (j *Job) CheckInput(hasInput bool) error {
	switch {
	case j.Evaluate != nil:
		return j.Evaluate.Check(hasInput)
	case !hasInput:
		return wrong("no data: expected a file")
	}
	return nil
}

// An Outcome is what is said of a job that was done, beside its report.
type Outcome struct {
	Unwalked string   `json:",omitempty"` // why nothing could be walked, for lack of an architecture
	Counts   Counts   `json:",omitzero"`
	Problems []string `json:",omitempty"` // of a snapshot: what of the target is not in it
	Object   *Object  `json:",omitempty"` // of Identify
	Used     Use      `json:",omitzero"`
}

// Tools are what jobs are done with. They are kept from one to the next.
type Tools struct {
	Engine     *engine.Engine
	Options    engine.Options // of the engine; a job adds its own
	Symbolizer *symbolize.Symbolizer
	// NewSymbolizer makes another one: a Symbolizer keeps what it did not find, too, and that
	// may be there by now.
	NewSymbolizer func() *symbolize.Symbolizer

	before Use // up to the last job
	// Ask asks whoever wants the job; nil: nobody answers.
	Ask  remote.Ask
	host remote.Host // what walks their targets
}

// forget replaces the Symbolizer.
func (t *Tools) forget() {
	_ = t.Symbolizer.Close() // it was read alone
	t.Symbolizer = t.NewSymbolizer()
}

// Run does the job with what in has, a regular file from its beginning, or a pipe, and
// writes its report to out. name is in's in all that is said of it. The error of a
// job that has no meaning is ErrUsage.
func (j *Job) Run(ctx context.Context, t *Tools, in *os.File, name string, out io.Writer) (Outcome, error) {
	o, err := j.run(ctx, t, in, name, out)
	o.Used = t.used()
	return o, err
}

func (j *Job) run(ctx context.Context, t *Tools, in *os.File, name string, out io.Writer) (Outcome, error) {
	switch {
	case j.Stack != nil:
		return j.Stack.run(ctx, t, in, name, out)
	case j.Profile != nil:
		return j.Profile.run(ctx, t, in, name, out)
	case j.Snapshot != nil:
		return j.Snapshot.run(ctx, t, in, name, out)
	case j.Symbolize != nil:
		return j.Symbolize.run(ctx, t, in, out)
	case j.Identify != nil:
		return j.Identify.run(t, in, name)
	case j.Evaluate != nil:
		return j.Evaluate.run(ctx, t, in, name, out)
	case j.Walk != nil:
		return j.Walk.run(ctx, t, in, out)
	}
	return Outcome{}, wrong("a job of no kind")
}

// open opens a target by a view of the engine with options. end closes both.
func (t *Tools) open(o engine.Options, in *os.File, name string) (target *engine.Target, end func(), err error) {
	e, err := t.Engine.With(o)
	if err != nil {
		return nil, nil, err
	}
	if target, err = e.OpenFile(in, name); err != nil {
		_ = e.Close()
		return nil, nil, err
	}
	return target, func() { _ = e.Close() }, nil
}

func (s *Stack) run(ctx context.Context, tools *Tools, in *os.File, name string, out io.Writer) (o Outcome, err error) {
	t, end, err := tools.open(s.Engine(tools.Options), in, name)
	if err != nil {
		return o, err
	}
	defer end()
	return s.write(ctx, t, out, WriteOptions{})
}

// write writes the stacks of a target.
func (s *Stack) write(ctx context.Context, t *engine.Target, out io.Writer, w WriteOptions) (o Outcome, err error) {
	stacks, err := s.Of(ctx, t)
	if err != nil {
		return o, err
	}
	defer stacks.Close()
	if err := stacks.WriteReport(ctx, out, w); err != nil {
		return o, err
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	o.Counts = stacks.Counts()
	err = noteUnwalked(&o, stacks.Err())
	return o, err
}

// noteUnwalked notes in an outcome that nothing could be walked; other errors are
// returned.
func noteUnwalked(o *Outcome, err error) error {
	if errors.Is(err, engine.ErrNotWalked) {
		o.Unwalked = err.Error()
		return nil
	}
	return err
}
