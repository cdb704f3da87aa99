// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/compared"
	"github.com/unwindd/unwindd/engine/trace"
)

// walked walks a target, and returns all of it that is compared. The error is ctx's.
func walked(ctx context.Context, r *compared.Reader, t *Target) (*compared.Process, error) {
	if t.HasGo() {
		all := t.WithGoroutines(ctx)
		defer all.Close()
		t = all
	}
	p := &compared.Process{}
	start := t.process.FunctionStart
	isWalked, first := false, (*trace.Stack)(nil)
	for s := range t.Stacks(ctx) {
		if first == nil {
			first = s
		}
		isWalked = isWalked || s.IsWalked()
		p.Threads = append(p.Threads, r.Thread(s, start))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	describe(ctx, p, t)
	if !isWalked {
		if err := t.NotWalked(first); err != nil {
			p.Unread, p.Threads = strings.TrimPrefix(err.Error(), t.Info().Path+": "), nil
		}
	}
	return p, ctx.Err()
}

// describe sets the facts about a process beside its threads, whose stacks were walked.
func describe(ctx context.Context, p *compared.Process, t *Target) {
	info := t.Info()
	p.SetSignal(info.Signal)
	p.Problems = t.Problems()
	if f := info.Facts; f != nil {
		x := &f.Process
		p.PID, p.Executable, p.Host, p.Started, p.Taken = max(x.ID, 0), x.Executable, x.Host, x.Created.UTC(), x.Kept.UTC()
		if c := f.Crash; c != nil {
			p.Crash = compared.Crash{Name: c.Name, Assertion: c.Assertion, IsRequest: c.IsRequest}
		}
	}
	fact, caught := t.Happened(ctx)
	if p.Fact = fact; caught != nil {
		p.First = caught.Name
	}
	for _, list := range [][]trace.Deadlock{t.Deadlocks(ctx), t.RuntimeDeadlocks(ctx)} {
		for i := range list {
			var ids []string
			for k := range list[i].Links {
				ids = append(ids, list[i].Links[k].Thread.ID)
			}
			p.Deadlocks = append(p.Deadlocks, ids)
		}
	}
	for _, m := range t.Modules() {
		if name := compared.ModuleName(m.Path); name != "" && len(m.BuildID) > 0 {
			p.Modules = append(p.Modules, trace.ModuleBuild{Name: name, BuildID: hex.EncodeToString(m.BuildID)})
		}
	}
	compared.SortModules(&p.Modules)
}
