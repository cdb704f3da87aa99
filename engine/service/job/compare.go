// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// Compare asks for a part of a comparison: the stacks of one target, or of those in an archive, as they are
// compared with others later.
type Compare struct {
	*pb.CompareOptions `json:"options"`
}

// NewCompare returns a Compare of a target of a name, whose labels are made by rules, NAME=REGEX. isOfCrashed compares
// only the threads that crashed.
func NewCompare(name string, labels []string, isOfCrashed bool) Compare {
	return Compare{&pb.CompareOptions{Name: name, Label: labels, Crashed: isOfCrashed}}
}

// maxLabelRules bounds the rules of labels.
const maxLabelRules = 64

// Check refuses options that have no meaning.
func (c *Compare) Check() error {
	_, err := c.rules()
	return err
}

func (c *Compare) rules() (list []engine.LabelRule, err error) {
	if len(c.Label) > maxLabelRules {
		return nil, wrong("%d rules of labels, expected at most %d", len(c.Label), maxLabelRules)
	}
	for _, text := range c.Label {
		rule, err := engine.ParseLabelRule(text)
		if err != nil {
			return nil, wrong("--label %s: %v", text, err)
		}
		list = append(list, rule)
	}
	return list, nil
}

// comparer returns a Comparer of targets that e opens.
func (c *Compare) comparer(e *engine.Engine) (*engine.Comparer, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	return e.NewComparer(engine.CompareOptions{Labels: rules, CrashedOnly: c.Crashed}), nil
}

// run writes the part. A target that cannot be read is in it with the reason.
func (c *Compare) run(ctx context.Context, r *Request) (o Outcome, err error) {
	e, err := r.Tools.Engine.With(r.Tools.Options)
	if err != nil {
		return o, err
	}
	defer e.Close()
	comparer, err := c.comparer(e)
	if err != nil {
		return o, err
	}
	var leftOut atomic.Int64
	if err := comparer.AddFile(ctx, r.Input, r.Name, func(error) { leftOut.Add(1) }); err != nil {
		return o, err
	}
	if n := leftOut.Load(); n > 0 {
		o.Problems = append(o.Problems, fmt.Sprintf("%s: %d of its members are no targets", r.Name, n))
	}
	return o, comparer.WritePart(r.Report)
}

// writePart writes the part of an open target.
func (c *Compare) writePart(ctx context.Context, e *engine.Engine, t *engine.Target, r *Request) (o Outcome, err error) {
	comparer, err := c.comparer(e)
	if err != nil {
		return o, err
	}
	comparer.Add(ctx, t)
	if err := ctx.Err(); err != nil {
		return o, err
	}
	return o, comparer.WritePart(r.Report)
}
