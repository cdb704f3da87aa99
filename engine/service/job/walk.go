// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/remote"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// Walk asks for the stacks of a target that stays with the caller: the input is its
// description (remote.Head), and the caller is asked for the rest.
type Walk struct {
	*pb.WalkOptions `json:"options"`
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
	stack := &Stack{StackOptions: w.Stack, WithPath: w.WithPath}
	e, err := tools.Engine.With(stack.Engine(tools.Options))
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
	o, err = stack.write(ctx, t, r.Report, WriteOptions{Color: w.Color, Verbose: w.Verbose, Most: int(w.MostBytes)})
	// Unanswered questions leave gaps in the report.
	return o, errors.Join(tools.host.Err(), err)
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
