// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/internal/collector"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// SnapshotVersion is the version of the snapshots that are read and written.
const SnapshotVersion = snapshot.FormatVersion

// SnapshotOptions selects the contents of a snapshot.
type SnapshotOptions struct {
	// Files adds the code objects themselves. Without it a snapshot names them by path
	// and build ID, and has only the ones that are in no file. A target names the files
	// of its modules, and may name any file: one whose build ID the target does not have
	// is left out.
	Files bool
	// AnyFile adds such files and memory from them too.
	AnyFile bool
}

// Snapshot is the data that was collected from a target.
type Snapshot struct {
	// Frames is the number of physical frames of the stacks.
	Frames int
	// Problems lists the parts of the target that are missing in the snapshot, each a
	// sentence.
	Problems []string
	// Labels are the labels that Write writes, at first the result of Target.Labels without rules. A snapshot
	// does not have the environment that rules would need later.
	Labels map[string]string
	// Unwalked is the error of Target.Walked: where it is not nil, the snapshot has no
	// stack that could be walked.
	Unwalked error

	contents snapshot.Contents
	describe func(arch string) (*sdk.Description, error)
}

// Contents returns what the snapshot has. Its type is internal: it is for packages of unwindd,
// and promises nothing.
func (s *Snapshot) Contents() *snapshot.Contents { return &s.contents }

// Write writes the snapshot. Equal snapshots give equal bytes. The error is w's, or names
// a part of the snapshot that the format cannot have.
func (s *Snapshot) Write(w io.Writer) error {
	contents := s.contents
	contents.Labels = s.Labels
	return snapshot.Write(w, &contents, snapshot.Options{Describe: s.describe})
}

// Snapshot walks the stacks of the target and collects what they need: a stack that is
// walked from the snapshot is the one that is walked from the target, where the files of
// its modules are found. It uses the modules of the target, which must not be walked by
// another goroutine meanwhile. The snapshot is valid as long as the target is open. The
// error is ctx's, or of a target that has no memory to keep; Unwalked means that no stack could be walked.
func (t *Target) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	if info := t.Info(); info.Kind == trace.AppleReport {
		return nil, fmt.Errorf("%s is a report of macOS or iOS, which has no memory that a snapshot could keep: send it as it is", info.Path)
	}
	r, err := collector.Collect(ctx, &collector.Request{
		Process: t.process, Facts: t.Info().Facts, Problems: t.Problems, Shared: t.engine.shared, Finder: t.engine.finderOf(t.process.State()), Files: o.Files, AnyFile: o.AnyFile,
		Runtimes: t.engine.runtimes, Managed: t.engine.managedOptions(), Goroutines: t.engine.options.Goroutines,
	})
	if err != nil {
		return nil, err
	}
	return &Snapshot{
		contents: r.Contents, Frames: r.Frames, Problems: r.Problems, Labels: t.Labels(nil), Unwalked: r.Unwalked,
		describe: func(arch string) (*sdk.Description, error) { return description(t.engine.plugins.Find(arch)) },
	}, nil
}
