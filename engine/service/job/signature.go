// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
)

// unsigned are the flags that have no meaning for a signature: they choose how stacks are
// written, or cut the stack that a signature is made of.
var unsigned = []string{
	"registers", "lanes", "lane", "locals", "globals", "source", "code", "top", "max-frames", "no-inlines", "no-fold", "full-names",
}

// signs reports whether the stacks come with signatures: the format has them, and no option cuts
// the stacks.
func (s *Stack) signs() bool {
	return s.Signature || (s.Format == "json" || s.Format == "markdown") && !s.NoInlines && s.frames() >= engine.DefaultMaxFrames
}

// signed makes the signatures of crashed threads as their stacks pass.
type signed struct {
	ctx     context.Context
	target  *engine.Target
	fact    string
	version int
	known   map[*trace.Thread]*trace.Signature
}

func newSigned(ctx context.Context, t *engine.Target, fact string, version int) *signed {
	return &signed{ctx, t, fact, version, map[*trace.Thread]*trace.Signature{}}
}

// over yields the stacks, and makes their signatures.
func (k *signed) over(stacks iter.Seq[*trace.Stack]) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		for s := range stacks {
			if s.Thread.Crashed {
				one := k.target.SignatureBy(k.ctx, k.version, s, k.fact)
				k.known[s.Thread] = &one
			}
			if !yield(s) {
				return
			}
		}
	}
}

func (k *signed) signature(th *trace.Thread) *trace.Signature { return k.known[th] }

// signatureThread returns the thread whose signature is requested.
func (s *Stack) signatureThread(t *engine.Target) (*trace.Thread, error) {
	if s.Thread != "" {
		list, err := s.selected(t)
		if err != nil {
			return nil, err
		}
		return list[0], nil
	}
	if th := t.Crashed(); th != nil {
		return th, nil
	}
	return nil, fmt.Errorf("%s: none of its %d threads crashed: expected --thread ID too", t.Info().Path, len(t.Threads()))
}

// sign walks the stack whose signature is requested.
func (p *Stacks) sign(ctx context.Context, t *engine.Target) error {
	th, err := p.signatureThread(t)
	if err != nil {
		return err
	}
	p.target, p.walked = t, &walked{target: t}
	for s := range p.walked.over(t.StacksOf(ctx, []*trace.Thread{th})) {
		one := t.SignatureBy(ctx, int(p.SignatureVersion), s, t.Fact(ctx))
		p.signed = report.NewSignature(t.Info().Path, th, &one)
	}
	if p.signed == nil {
		return cmp.Or(ctx.Err(), fmt.Errorf("%s: thread %s has no stack", t.Info().Path, th.ID))
	}
	return nil
}
