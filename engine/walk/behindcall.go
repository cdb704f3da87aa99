// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// placeBehindCall puts in force the rules that the architecture has for the instruction that a
// frame returns to: where registers of the frame are while its call is in progress. A register
// that a call-site rule of the frame's row places is there.
func (w *walker) placeBehindCall(ctx context.Context, f *frame) {
	if w.machine.Behind == 0 || f.exact || f.callee == nil {
		return
	}
	var cfa locexpr.Location
	if f.hasCFA {
		cfa = f.cfaLocation()
	}
	var places []placedRegister
	for _, r := range w.rulesBehindCall(f) {
		isPlaced := func(p placedRegister) bool { return p.register == r.Column }
		if slices.ContainsFunc(f.callSite, isPlaced) {
			continue
		}
		place := placedRegister{register: r.Column} // undefined, if the rule cannot be evaluated
		if l, err := r.Rule.Location(ctx, w.evals.plugin, frameContext{frame: f}, r.Column, cfa); err == nil {
			place.slot = placeSlot(&l)
		}
		places = append(places, place)
	}
	f.callSite = append(f.callSite, places...)
}

// rulesBehindCall returns the rules for the instruction at the PC of a frame.
func (w *walker) rulesBehindCall(f *frame) []cfi.RegisterRule {
	if f.module != nil && f.module.Code.IsKnown() {
		return f.module.Code.RulesBehindCall(f.offset)
	}
	// Code that was made while the program ran may be another the next time.
	code := make([]byte, w.machine.Behind)
	n, _ := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, f.pc, code) // missing code matches nothing
	return w.machine.RulesBehind(code[:n])
}
