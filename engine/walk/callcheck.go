// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
)

// This file checks guessed return addresses by the calls before them.

// maxFollowed is how many pieces of code are looked at to find out where a call may have led.
// More than two jumps from function to function are rare.
const maxFollowed = 16

// maxChecks bounds the checks of the guesses of one stack. Unchecked guesses count as possible.
const maxChecks = 1 << 16

// mayCheck counts a check; it returns false where there were enough.
func (w *walker) mayCheck() bool {
	return w.guesses.mayCheck() && w.process.bounds.mayCheck()
}

// callSites reports for addresses whether each is in executable memory right after a call
// instruction. Answers are remembered.
func (w *walker) callSites(ctx context.Context, pcs ...uint64) ([]code.CallSite, error) {
	return w.callSitesAhead(ctx, pcs, nil)
}

// callSitesAhead is callSites, and has the call sites before other addresses remembered too, if
// the plugin is asked at all.
func (w *walker) callSitesAhead(ctx context.Context, pcs, ahead []uint64) ([]code.CallSite, error) {
	sites := make([]code.CallSite, len(pcs))
	var requested []int
	var unknown code.Classifier
	before := make([]byte, w.machine.Description.MaxInstruction)
	for i, pc := range pcs {
		if !w.isCode(pc - 1) {
			continue
		}
		s := w.segmentAt(pc - 1)
		if known, ok := w.knownSite(s, pc); ok {
			sites[i] = known
			continue
		}
		switch {
		case w.codeBefore(s, pc, before):
			unknown.Add(pc, before)
			requested = append(requested, i)
		case s != nil:
			sites[i] = s.Module.Code.DescribedSite(s.ObjectAddress(pc))
			s.Module.Code.KeepSite(s.ObjectAddress(pc), sites[i])
		}
	}
	beside := w.addAhead(&unknown, ahead, len(requested))
	answers, err := unknown.Ask(ctx, w.machine.Machine)
	if err != nil && len(beside) > 0 && ctx.Err() == nil {
		return w.callSitesAhead(ctx, pcs, nil) // one of the others may be why
	}
	if err != nil {
		return nil, err
	}
	for k, i := range requested {
		sites[i] = answers[k]
		w.keepSite(pcs[i], answers[k])
	}
	for k, pc := range beside {
		w.keepSite(pc, answers[len(requested)+k])
	}
	return sites, nil
}

// addAhead adds addresses to a question about n others, and returns those that it added.
func (w *walker) addAhead(unknown *code.Classifier, ahead []uint64, n int) (added []uint64) {
	if n == 0 {
		return nil
	}
	before := make([]byte, w.machine.Description.MaxInstruction)
	for _, pc := range ahead {
		s := w.segmentAt(pc - 1)
		if _, ok := w.knownSite(s, pc); !ok && w.codeBefore(s, pc, before) {
			unknown.Add(pc, before)
			added = append(added, pc)
		}
	}
	return added
}

// knownSite returns the remembered call site before an address, which is in a segment or in
// none.
func (w *walker) knownSite(s *code.Segment, pc uint64) (site code.CallSite, ok bool) {
	switch {
	case s != nil:
		return s.Module.Code.KnownSite(s.ObjectAddress(pc))
	case w.input.sample != nil: // samples of other processes have other code there
		return code.CallSite{}, false
	}
	return w.process.unmapped.site(w.machine, pc)
}

// keepSite remembers the call site before an address.
func (w *walker) keepSite(pc uint64, site code.CallSite) {
	if s := w.segmentAt(pc - 1); s != nil {
		s.Module.Code.KeepSite(s.ObjectAddress(pc), site)
	} else if w.input.sample == nil {
		w.process.unmapped.keepSite(w.machine, pc, site)
	}
}

// callSite is callSites for one address. It allocates nothing where the answer is remembered.
func (w *walker) callSite(ctx context.Context, pc uint64) (code.CallSite, error) {
	if s := w.segmentAt(pc - 1); s != nil && w.isCode(pc-1) {
		if known, ok := s.Module.Code.KnownSite(s.ObjectAddress(pc)); ok {
			return known, nil
		}
	}
	sites, err := w.callSitesAhead(ctx, []uint64{pc}, w.ahead.callSites())
	if err != nil {
		return code.CallSite{}, err
	}
	return sites[0], nil
}

// codeBefore reads the code before an address, which is in a segment or in none. It returns
// false where not all of it is there.
func (w *walker) codeBefore(s *code.Segment, pc uint64, before []byte) bool {
	if s != nil {
		return s.Module.Code.CodeBefore(s.ObjectAddress(pc), before)
	}
	n, err := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, pc-uint64(len(before)), before)
	return err == nil && n == len(before)
}

// evidence is the evidence of a call for a frame further in.
type evidence uint8

const (
	otherwise evidence = iota // it led to other code
	onward                    // it names its target, which leads on to an unknown place
	anywhere                  // it may have led to any code
	named                     // it names the function of the frame, or one that goes on to it
)

// mayHaveCalled reports whether the call before pc may have led to f: not where it names its
// target, and all code that the target leads on to is known and is not f's function. A frame
// whose PC is no code may have been any function.
func (w *walker) mayHaveCalled(ctx context.Context, pc uint64, site code.CallSite, f *frame) (evidence, error) {
	segment := w.segmentAt(pc - 1)
	if !site.IsDirect || segment == nil || !segment.Module.Code.IsKnown() || !w.mayCheck() {
		return anywhere, nil // runtimes change the calls in JIT code
	}
	if !w.isCode(f.pc) && f.callee != nil {
		return onward, nil
	}
	own := w.boundsOf(f)
	waiting := []uint64{(pc + uint64(site.Target)) & w.machine.addresses}
	for next := 0; next < len(waiting); next++ {
		if next == maxFollowed {
			return onward, nil
		}
		entry := waiting[next]
		if entry-own.Start < own.End-own.Start {
			return named, nil
		}
		more, known, err := w.leadsTo(ctx, entry, f)
		if err != nil || !known {
			return onward, err
		}
		for _, address := range more {
			if !slices.Contains(waiting, address) {
				waiting = append(waiting, address)
			}
		}
	}
	return otherwise, nil
}

// decision is the outcome of checks of a guessed frame.
type decision uint8

const (
	refuted   decision = iota // known facts are against it
	possible                  // no known facts are
	likely                    // its own caller is in code that is not here
	confirmed                 // its own caller is a return address of a call that may have led to it
)

// judgeByCallers judges a guessed frame by the rows of its own code and of its callers': the
// return addresses that rows find must follow calls that may have led to the frames. It stops
// where nothing more is known. With needsDescribed, rows that are read from the code do not
// count.
func (w *walker) judgeByCallers(ctx context.Context, f *frame, needsDescribed bool) (decision, error) {
	v := possible
	for range maxJudged {
		if f.module == nil || !w.mayCheck() {
			return v, nil
		}
		source, err := w.row(ctx, f, f.exact)
		switch {
		case err == nil && source.Rules == nil && source.Outermost != "":
			return confirmed, nil
		case err != nil || source.Rules == nil || needsDescribed && !source.By.IsDescribed() || source.IsSignalFrame() || source.IsEntered:
			return v, nil //nolint:nilerr // without a row nothing more is known
		}
		f.source = source
		caller, err := w.recover(ctx, f, source)
		switch {
		case err != nil:
			return v, nil //nolint:nilerr // nor where memory or a register is missing
		case caller == nil:
			return confirmed, nil // it is the outermost
		}
		next, err := w.judgeCaller(ctx, f, caller)
		if err != nil || next != confirmed {
			if next == refuted || next > v {
				v = next
			}
			return v, err
		}
		v, f = confirmed, caller
	}
	return v, nil
}

// maxJudged is how many callers of a guessed frame are looked at.
const maxJudged = 32

// judgeCaller judges the caller of a frame by call frame information.
func (w *walker) judgeCaller(ctx context.Context, f, caller *frame) (decision, error) {
	if !w.isCode(caller.pc - 1) {
		return refuted, nil
	}
	switch {
	case caller.exact:
		return possible, nil
	case !w.isReadable(caller.pc - 1):
		return likely, nil
	}
	site, err := w.callSite(ctx, caller.pc)
	if err != nil {
		return refuted, err
	}
	if !site.IsAfterCall {
		if caller.module == nil || w.isEnteredByReturn(caller) {
			return possible, nil
		}
		return refuted, nil
	}
	if called, err := w.mayHaveCalled(ctx, caller.pc, site, f); err != nil || called == otherwise {
		return refuted, err
	}
	return confirmed, nil
}

// isEnteredByReturn reports whether the PC of a frame, which follows no call, is the start of a
// function that is returned to: a signal trampoline, or the code below the first function of a
// context.
func (w *walker) isEnteredByReturn(f *frame) bool {
	if !f.module.Code.IsKnown() {
		return true
	}
	b := f.module.Code.BoundsAt(f.offset)
	return b.IsKnown && f.offset-b.Start <= uint64(w.machine.Description.CallDistance)
}

// isReadable reports whether the target has the byte at an address.
func (w *walker) isReadable(address uint64) bool {
	n, _ := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, address, w.input.scratch[:1])
	return n == 1
}

// boundsOf returns the bounds of the function of f, as far as they are known; otherwise its PC
// alone.
func (w *walker) boundsOf(f *frame) code.Bounds {
	distance := f.offset - f.lookup
	bounds := code.Bounds{Start: f.pc - distance, End: f.pc - distance + 1}
	if f.module == nil || !f.module.Code.IsKnown() {
		return bounds
	}
	if b := f.module.Code.BoundsAt(f.lookup); b.IsKnown {
		bounds.Start -= f.lookup - b.Start
		bounds.End = bounds.Start + b.End - b.Start
	}
	return bounds
}

// leadsTo returns the addresses that the code at an address leads on to without a call. known
// is false where they are not known, or where the code may be the same as f's.
func (w *walker) leadsTo(ctx context.Context, address uint64, f *frame) (next []uint64, known bool, err error) {
	segment := w.segmentAt(address)
	if segment == nil || !segment.Module.Code.IsKnown() {
		return nil, false, nil
	}
	e, err := segment.Module.Code.ExitsAhead(ctx, segment.ObjectAddress(address), func() []uint64 { return w.ahead.called(segment) })
	if err != nil || e == nil || e.IsOpen {
		return nil, false, err
	}
	if f.module != nil && f.module.Code == segment.Module.Code && f.lookup-e.Start < e.End-e.Start {
		return nil, false, nil
	}
	base := segment.Start - segment.Address
	for _, a := range e.Jumps {
		next = append(next, a+base)
	}
	for _, slot := range e.Slots {
		// The jump led to the address that the dynamic linker put into a table.
		target, err := w.word(ctx, slot+base, w.machine.Description.AddressBits)
		if err != nil || !segment.Module.Code.IsLinkageSlot(slot) {
			return nil, false, nil //nolint:nilerr // it is not known
		}
		next = append(next, target)
	}
	return next, true, nil
}
