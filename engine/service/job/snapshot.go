// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// Snapshot asks for the snapshot of a target.
type Snapshot struct {
	*pb.SnapshotOptions `json:"options"`
}

// NewSnapshot returns a Snapshot of a target of a name, with the defaults.
func NewSnapshot(name string) Snapshot { return Snapshot{&pb.SnapshotOptions{Name: name}} }

func (s *Snapshot) run(ctx context.Context, r *Request) (o Outcome, err error) {
	t, end, err := r.open(r.Tools.Options)
	if err != nil {
		return o, err
	}
	defer end()
	return writeSnapshot(ctx, t, engine.SnapshotOptions{Files: s.Files}, r)
}

// writeSnapshot writes the snapshot of a target.
func writeSnapshot(ctx context.Context, t *engine.Target, options engine.SnapshotOptions, r *Request) (o Outcome, err error) {
	taken, err := t.Snapshot(ctx, options)
	if err != nil {
		return o, err
	}
	contents := taken.Contents()
	o.Counts = Counts{Stacks: len(contents.Threads)}
	o.Snapshot = &SnapshotCounts{Frames: taken.Frames, Modules: len(contents.Modules)}
	for _, m := range contents.Memory {
		o.Snapshot.Memory += len(m.Data)
	}
	o.Problems = slices.Concat(t.Problems(), taken.Problems)
	if taken.Unwalked != nil {
		return o, taken.Unwalked
	}
	return o, taken.Write(r.Report)
}

// SnapshotCounts count the contents of a snapshot, beside its threads.
type SnapshotCounts struct {
	Frames, Modules int
	Memory          int // bytes
}

// renamedError has another name of a file in its text.
type renamedError struct {
	error
	text string
}

func (e renamedError) Error() string { return e.text }
func (e renamedError) Unwrap() error { return e.error }

// renamed returns an error with another name of a file.
func renamed(err error, name, newName string) error {
	return renamedError{err, strings.ReplaceAll(err.Error(), name, newName)}
}

// rename changes the name of a profile's file.
func rename(p *trace.Profile, name, newName string) {
	p.Path = newName
	for i, problem := range p.Problems {
		p.Problems[i] = strings.ReplaceAll(problem, name, newName)
	}
}
