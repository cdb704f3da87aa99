// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
)

// A Snapshot asks for the snapshot of a target.
type Snapshot struct {
	Files bool // with the files of the code whose build IDs the target states
}

func (s *Snapshot) run(ctx context.Context, tools *Tools, in *os.File, name string, out io.Writer) (o Outcome, err error) {
	t, end, err := tools.open(tools.Options, in, name)
	if err != nil {
		return o, err
	}
	defer end()
	made, err := t.Snapshot(ctx, engine.SnapshotOptions{Files: s.Files})
	if err != nil {
		return o, err
	}
	o.Counts = Counts{Stacks: len(made.Threads)}
	o.Problems = slices.Concat(t.Problems(), made.Problems)
	if made.Unwalked != nil {
		return o, made.Unwalked
	}
	return o, made.Write(out)
}

// A renamedError has another name of a file in its text.
type renamedError struct {
	error
	text string
}

func (e renamedError) Error() string { return e.text }
func (e renamedError) Unwrap() error { return e.error }

// renamed is an error with another name of a file.
func renamed(err error, from, to string) error {
	return renamedError{err, strings.ReplaceAll(err.Error(), from, to)}
}

// rename gives the file of a profile another name.
func rename(p *engine.Profile, from, to string) {
	p.Path = to
	for i, problem := range p.Problems {
		p.Problems[i] = strings.ReplaceAll(problem, from, to)
	}
}
