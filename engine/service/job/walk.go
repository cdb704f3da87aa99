// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// Walk asks for the stacks of a target that stays with the caller, for its snapshot, or for a part of
// a comparison: the input is its description (remote.Head), and the caller is asked for the rest.
type Walk struct {
	*pb.WalkOptions `json:"options"`
}

// Check refuses options that have no meaning.
func (w *Walk) Check() error {
	switch {
	case w.Snapshot != nil && w.Compare != nil:
		return wrong("a walk for a snapshot and for a comparison, expected one of them")
	case w.Compare != nil:
		return w.comparing().Check()
	}
	return nil
}

func (w *Walk) comparing() *Compare { return &Compare{w.Compare} }

// engine returns the options of an engine with changes that the report needs.
func (w *Walk) engine(o engine.Options) engine.Options {
	switch {
	case w.Compare != nil:
		o.Goroutines = true
		return o
	case w.Snapshot != nil:
		return o
	}
	return (&Stack{StackOptions: w.Stack}).Engine(o)
}

func (w *Walk) run(ctx context.Context, r *Request) (o Outcome, err error) {
	tools := r.Tools
	if tools.Ask == nil {
		return o, errors.New("nobody answers what is asked of the target")
	}
	head, err := readHead(r.Input)
	if err != nil {
		return o, err
	}
	e, err := tools.Engine.With(w.engine(tools.Options))
	if err != nil {
		return o, err
	}
	defer e.Close()
	state, err := tools.host.Open(head, tools.Ask, e.Finder(""))
	if err != nil {
		return o, err
	}
	t := e.Attach(state)
	defer t.Close()
	t.SetInputProblems(head.Packed)
	o, err = w.write(ctx, e, t, r)
	// Unanswered questions leave gaps in the report.
	return o, errors.Join(tools.host.Err(), err)
}

// write writes the report of a target.
func (w *Walk) write(ctx context.Context, e *engine.Engine, t *engine.Target, r *Request) (o Outcome, err error) {
	switch {
	case w.Snapshot != nil:
		o, err = writeSnapshot(ctx, t, engine.SnapshotOptions{Files: w.Snapshot.Files, AnyFile: w.AnyFile}, r)
		if errors.Is(err, trace.ErrNotWalked) {
			o.Unwalked, err = err.Error(), nil
		}
		return o, err
	case w.Compare != nil:
		return w.comparing().writePart(ctx, e, t, r)
	}
	stack := &Stack{StackOptions: w.Stack, WithPath: w.WithPath}
	return stack.write(ctx, t, r.Report, WriteOptions{Color: w.Color, Verbose: w.Verbose, Most: int(w.MostBytes)})
}

// readHead reads the description of a target from a file.
func readHead(f *os.File) (*remote.Head, error) {
	m, err := object.MapFile(f, "the head of the target")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.Data()) > remote.MaxHead {
		return nil, fmt.Errorf("%w: %d bytes, expected at most %d", remote.ErrHead, len(m.Data()), remote.MaxHead)
	}
	var head *remote.Head
	err = object.Guard(func() (err error) { head, err = remote.DecodeHead(m.Data()); return err })
	return head, err
}
