// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// opaqueThread is a thread that was bound with opaque ranges in its maps.
type opaqueThread struct {
	subject string // of findings
	thread  uint64 // handle
	engine  sdk.Engine
	lanes   uint32
	ranges  []opaqueRange
}

// opaqueRange is a range of an address space that Translate is asked about.
type opaqueRange struct {
	space       locexpr.AddressSpace
	start, size uint64
}

// The bounds of what Translate is asked about: threads, and ranges of one.
const (
	maxOpaqueThreads = 16
	maxOpaqueRanges  = 16
)

// keepOpaque keeps the opaque ranges of a thread for the check "translate".
func (v *verifier) keepOpaque(subject string, thread uint64, e sdk.Engine, b *sdk.ThreadBinding) {
	if len(v.opaque) >= maxOpaqueThreads || b.Problem != "" {
		return
	}
	o := opaqueThread{subject: subject, thread: thread, engine: e, lanes: b.Lanes}
	for i := range b.Maps {
		for j := range b.Maps[i].Ranges {
			if r := &b.Maps[i].Ranges[j]; r.Kind == sdk.OpaqueMap && len(o.ranges) < maxOpaqueRanges {
				o.ranges = append(o.ranges, opaqueRange{b.Maps[i].Space, r.Start, r.Size})
			}
		}
	}
	if len(o.ranges) > 0 {
		v.opaque = append(v.opaque, o)
	}
}

// translate asks for addresses in the opaque ranges of threads that were bound.
func (v *verifier) translate() {
	for i := range v.opaque {
		o := &v.opaque[i]
		for _, r := range o.ranges {
			for _, lane := range []int32{-1, 0, int32(o.lanes) - 1} { //nolint:gosec // at most MaxLanes
				for _, offset := range []uint64{0, r.size / 2, r.size - 1} {
					if !v.translated(o, r, r.start+offset, lane) {
						return
					}
				}
			}
		}
	}
}

// translated asks for one address of an opaque range. It reports whether others are worth
// asking for.
func (v *verifier) translated(o *opaqueThread, r opaqueRange, address uint64, lane int32) bool {
	req := &sdk.TranslateRequest{Space: r.space, Address: address, Thread: o.thread, Lane: lane}
	what := fmt.Sprintf("address %#x of space %d, lane %d, %s", address, r.space, lane, o.subject)
	answer, ok := v.translateOnce(o.engine, what, req)
	if !ok {
		if errors.Is(v.refusal, sdk.ErrNotImplemented) {
			v.find(Error, "Write Translate, or answer a map whose ranges say where they lead.",
				"Translate of %s: the call is not implemented, and BindThreads answered an opaque range there", what)
			return false
		}
		if o.engine != (emptyEngine{}) { // else it may have missed what there is to read
			v.unanswered(Error, "Translate", what)
		}
		return false
	}
	z := v.evaluates()
	location, err := z.location(v.ctx, z.rules, answer.Expr)
	if err != nil {
		v.find(Error, "Mend the expression: it is evaluated in the canonical dialect, with an empty stack.", "TranslateAnswer.Expr of %s: %v", what, err)
		return false
	}
	if space, to, ok := location.MemoryAddress(); ok && space == r.space && to-r.start < r.size {
		v.findLater("cycles", "Answer a place in another space, in a register, or outside the opaque range.",
			"Translate of %s: it leads to %#x of the same space, in the same opaque range", what, to)
	}
	again, ok := v.translateOnce(o.engine, what+", again", req)
	if ok && !bytes.Equal(again.Expr, answer.Expr) {
		v.find(Error, "Answer by what the request and the target say: nothing of the time or of calls before.", "Translate of %s: two calls gave different expressions", what)
		return false
	}
	return ok
}

func (v *verifier) translateOnce(e sdk.Engine, what string, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, bool) {
	return ask(v.session, "Translate", what, func(ctx context.Context) (*sdk.TranslateAnswer, error) {
		return v.arch.Translate(ctx, v.offer(e), req)
	}, func(a *sdk.TranslateAnswer) error { return a.Validate(v.desc, req) })
}
