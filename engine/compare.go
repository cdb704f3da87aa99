// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

// CompareOptions are the options of a Comparer.
type CompareOptions struct {
	// Labels are rules that make labels of targets.
	Labels []LabelRule
	// ByThread compares the threads of targets with each other, not the targets.
	ByThread bool
	// Jobs is how many targets are walked at a time; 0: as many as there are processors.
	Jobs int
}

// Comparer compares the stacks of many targets. It keeps their distinct stacks, not the targets.
type Comparer struct {
}

// NewComparer returns a Comparer without targets.
func (e *Engine) NewComparer(o CompareOptions) *Comparer { panic("contract") }

// AddPaths walks targets and adds them: cores, minidumps, snapshots, IDs of living processes, reports of
// `stack --format json`, parts, dumps of flight recorders and traces of Kineto. A target that cannot be
// read is added with the reason. The error is of ctx alone. done is called after each path; nil: it is not.
func (c *Comparer) AddPaths(ctx context.Context, paths []string, done func()) error { panic("contract") }

// Add walks an open target and adds it.
func (c *Comparer) Add(ctx context.Context, t *Target) { panic("contract") }

// AddReport adds a target that `stack --format json` reported, or a part that WritePart wrote.
func (c *Comparer) AddReport(r io.Reader, name string) error { panic("contract") }

// WritePart writes what was added so far, for AddReport of another Comparer.
func (c *Comparer) WritePart(w io.Writer) error { panic("contract") }

// Comparison returns the comparison of all targets that were added.
func (c *Comparer) Comparison() *trace.Comparison { panic("contract") }
