// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
)

// Job is one task for an engine, with its options. One field is set.
type Job struct {
	Stack            *Stack            `json:",omitempty"`
	Profile          *Profile          `json:",omitempty"`
	Snapshot         *Snapshot         `json:",omitempty"`
	Compare          *Compare          `json:",omitempty"`
	Symbolize        *Symbolize        `json:",omitempty"`
	SymbolizeProfile *SymbolizeProfile `json:",omitempty"`
	Identify         *Identify         `json:",omitempty"`
	Evaluate         *Evaluate         `json:",omitempty"`
	Walk             *Walk             `json:",omitempty"`

	Architectures *Architectures `json:",omitempty"`
}

// Name returns the name of the job's command.
func (j *Job) Name() string {
	switch {
	case j.Stack != nil:
		return "stack"
	case j.Profile != nil:
		return "profile"
	case j.Snapshot != nil:
		return "snapshot"
	case j.Compare != nil:
		return "compare"
	case j.Symbolize != nil, j.SymbolizeProfile != nil:
		return "symbolize"
	case j.Evaluate != nil:
		return "eval"
	case j.Walk != nil:
		return "walk"
	case j.Architectures != nil:
		return "architectures"
	}
	return "objects"
}

// Options returns the options of the job with the name of its target; nil: it has none, or no
// other machine does it.
func (j *Job) Options() proto.Message {
	switch {
	case j.Stack != nil:
		return j.Stack.StackOptions
	case j.Profile != nil:
		return j.Profile.ProfileOptions
	case j.Snapshot != nil:
		return j.Snapshot.SnapshotOptions
	case j.Compare != nil:
		return j.Compare.CompareOptions
	}
	return nil
}

// CheckInput refuses options that have no meaning with an input, or, where hasInput is false,
// without one. Only an expression can be evaluated in a state of its own.
func (j *Job) CheckInput(hasInput bool) error {
	switch {
	case j.Evaluate != nil:
		return j.Evaluate.Check(hasInput)
	case !hasInput:
		return wrong("no data: expected a file")
	}
	return nil
}

// Outcome has the facts about a finished job that are not in its report.
type Outcome struct {
	Unwalked string   `json:",omitempty"` // why nothing could be walked, for lack of an architecture
	Counts   Counts   `json:",omitzero"`
	Problems []string `json:",omitempty"` // of a snapshot: the parts of the target that it lacks
	Object   *Object  `json:",omitempty"` // of Identify
	Named    Named    `json:",omitzero"`  // of SymbolizeProfile
	// Snapshot has counts of a snapshot.
	Snapshot *SnapshotCounts `json:",omitempty"`
	Used     Use             `json:",omitzero"`
}

// Named counts the frames of a profile.
type Named struct {
	Had     int            `json:",omitempty"` // frames that had names
	Found   int            `json:",omitempty"` // frames with names from files
	Without map[string]int `json:",omitempty"` // frames without names, by kinds of symbolize.NamedProfile
}

// Tools are the engine and the caches with which jobs are done. They are kept from one job to
// the next.
type Tools struct {
	Engine     *engine.Engine
	Options    engine.Options // of the engine; a job adds its own
	Symbolizer *symbolize.Symbolizer
	// NewSymbolizer makes a new one: a Symbolizer also remembers missing files, which may be
	// there by now.
	NewSymbolizer func() *symbolize.Symbolizer

	before Use // up to the last job
	// Ask asks the caller of the job; nil: it answers no questions.
	Ask  remote.Ask
	host remote.Host // walks targets of callers
}

// Forget has the files of build IDs, or of all, looked for anew.
func (t *Tools) Forget(ids [][]byte, all bool) {
	if all {
		t.forget()
		return
	}
	for _, id := range ids {
		t.Symbolizer.Forget(id)
	}
}

// forget replaces the Symbolizer.
func (t *Tools) forget() {
	_ = t.Symbolizer.Close() // its files were only read
	t.Symbolizer = t.NewSymbolizer()
}

// Request is the input of a job, and a place for its report.
type Request struct {
	Tools  *Tools
	Input  *os.File // a regular file from its beginning, or a pipe
	Name   string   // of the input, in reports and errors
	Report io.Writer
}

// Run does the job. The error of a job that has no meaning is ErrUsage.
func (j *Job) Run(ctx context.Context, r *Request) (Outcome, error) {
	o, err := j.run(ctx, r)
	o.Used = r.Tools.used()
	return o, err
}

func (j *Job) run(ctx context.Context, r *Request) (Outcome, error) {
	switch {
	case j.Stack != nil:
		return j.Stack.run(ctx, r)
	case j.Profile != nil:
		return j.Profile.run(ctx, r)
	case j.Snapshot != nil:
		return j.Snapshot.run(ctx, r)
	case j.Compare != nil:
		return j.Compare.run(ctx, r)
	case j.Symbolize != nil:
		return j.Symbolize.run(r)
	case j.SymbolizeProfile != nil:
		return j.SymbolizeProfile.run(ctx, r)
	case j.Identify != nil:
		return j.Identify.run(r)
	case j.Evaluate != nil:
		return j.Evaluate.run(ctx, r)
	case j.Walk != nil:
		return j.Walk.run(ctx, r)
	case j.Architectures != nil:
		return j.Architectures.run(r)
	}
	return Outcome{}, wrong("a job of no kind")
}

// open opens the input as a target, by a view of the engine with options. end closes both.
func (r *Request) open(o engine.Options) (target *engine.Target, end func(), err error) {
	e, err := r.Tools.Engine.With(o)
	if err != nil {
		return nil, nil, err
	}
	if target, err = e.OpenFile(r.Input, r.Name); err != nil {
		_ = e.Close()
		return nil, nil, err
	}
	return target, func() { _ = e.Close() }, nil
}

func (s *Stack) run(ctx context.Context, r *Request) (o Outcome, err error) {
	t, end, err := r.open(s.Engine(r.Tools.Options))
	if err != nil {
		return o, err
	}
	defer end()
	return s.write(ctx, t, r.Report, WriteOptions{})
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
	if err = stacks.Err(); errors.Is(err, trace.ErrNotWalked) {
		o.Unwalked = err.Error()
		return o, nil
	}
	return o, err
}
