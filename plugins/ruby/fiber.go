// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// This file finds what executes Ruby and has no native stack of its own now: fibers that have
// resumed another one, and threads that no native thread executes.

// maxFibers bounds the fibers of a process.
const maxFibers = 1 << 14

// ManagedThreads lists the fibers that have resumed others, and the threads without a native one.
func (p *plugin) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	g, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	r := newReader(ctx, e, g)
	answer := &sdk.ManagedThreadsAnswer{}
	threads, err := r.readThreads()
	if err != nil {
		answer.Problems = append(answer.Problems, err.Error())
	}
	for _, t := range threads {
		if t.isParked {
			m := sdk.ManagedThread{Number: t.address, Name: t.name, State: t.state}
			r.managedFrames(&m, t.ec, req.Frames)
			answer.Threads = append(answer.Threads, m)
		}
		list, err := r.resumers(t)
		if err != nil {
			answer.Problems = append(answer.Problems, "fibers are missing: "+err.Error())
		}
		if answer.Threads = append(answer.Threads, r.fibers(t, list, req.Frames)...); len(answer.Threads) > maxFibers {
			answer.Problems = append(answer.Problems, fmt.Sprintf("there are more than %d fibers: the others are left out", maxFibers))
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return answer, nil
}

// resumers returns the fiber that a thread executes and, outwards, those that have resumed it.
func (r *reader) resumers(t *thread) ([]uint64, error) {
	fiber, err := r.word("a fiber", t.ec+r.ecFiber)
	if err != nil || fiber+fiberEC != t.ec {
		return nil, err
	}
	list, isKnown := []uint64{fiber}, map[uint64]bool{fiber: true}
	for len(list) < maxFibers {
		if fiber, err = r.word("a fiber's resumer", fiber+r.fiberBefore); err != nil || fiber == 0 {
			return list, err
		}
		if isKnown[fiber] || !isPlace(fiber) {
			return list, fmt.Errorf("a fiber at %#x has resumed another one: expected one that is not among those", fiber)
		}
		isKnown[fiber] = true
		for _, named := range []struct {
			what          string
			place, expect uint64
		}{{"the fiber of an execution context", fiberEC + r.ecFiber, fiber}, {"the thread of a fiber", fiberEC + r.ecThread, t.address}} {
			is, err := r.word(named.what, fiber+named.place)
			if err == nil && is != named.expect {
				err = fmt.Errorf("%s is %#x, expected %#x", named.what, is, named.expect)
			}
			if err != nil {
				return list, err
			}
		}
		list = append(list, fiber)
	}
	return list, nil
}

// fibers describes the fibers of a thread: the one that it executes, and those that have resumed
// it. A thread that has resumed none executes its own.
func (r *reader) fibers(t *thread, list []uint64, hasFrames bool) []sdk.ManagedThread {
	if len(list) < 2 {
		return nil
	}
	out := make([]sdk.ManagedThread, 0, len(list))
	for i, fiber := range list {
		m := sdk.ManagedThread{Number: fiber, Name: t.name, State: "resumed"}
		if i > 0 {
			m.Reason, m.WaitsFor = "has resumed another fiber", []uint64{list[i-1]}
			r.managedFrames(&m, fiber+fiberEC, hasFrames)
		} else if m.Carrier, m.IsMounted = t.id, true; m.Carrier == "" {
			continue // its frames are in the stack of its native thread
		}
		out = append(out, m)
	}
	return out
}

// managedFrames gives a thread the frames of an execution context.
func (r *reader) managedFrames(m *sdk.ManagedThread, ec uint64, hasFrames bool) {
	if !hasFrames {
		return
	}
	list, err := r.readFrames(ec)
	if err != nil {
		m.Problem = "frames of Ruby are missing: " + err.Error()
	}
	for _, f := range list {
		if !f.isHidden {
			m.Frames = append(m.Frames, f.shown)
		}
	}
	if len(m.Frames) == 0 && m.Problem == "" {
		m.Problem = "it has no frames of Ruby"
	}
}
