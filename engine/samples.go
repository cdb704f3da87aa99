// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// OpenSamples makes a target for samples of one process of an architecture. It has no threads;
// LoadMaps sets its modules, and Walkers walk the samples.
func (e *Engine) OpenSamples(arch string) *Target {
	return e.Attach(&walk.Sample{Sample: trace.Sample{Arch: arch}})
}

// Walker walks the stacks of the samples of one process, one after the other, in memory that it
// keeps: once the rows of their code are known, a walk without symbols allocates nothing but
// the text of an error that ends it. It is not for concurrent use; a Target may have several.
type Walker struct {
	walker *walk.Walker
	sample walk.Sample
}

// Walker makes a Walker for samples of the target's process.
func (t *Target) Walker() *Walker { return &Walker{walker: t.process.Walker()} }

// Walk walks the stack of a sample. The stack and its frames are valid until the next call.
func (k *Walker) Walk(ctx context.Context, s *trace.Sample) *trace.Stack {
	k.sample = walk.Sample{Sample: *s}
	return k.walker.Walk(ctx, &k.sample)
}
