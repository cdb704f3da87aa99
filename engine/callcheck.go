package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file holds guessed return addresses against the calls before them.

// maxFollowed is how many pieces of code are looked at to find out where a call
// may have led. Jumps from function to function are rarely more than two.
const maxFollowed = 16

// maxChecks bounds the checks of the guesses of one stack. What is not checked is
// taken for possible.
const maxChecks = 1 << 16

// mayCheck counts a check; false says that there were enough.
func (w *walker) mayCheck() bool {
	w.checked++
	return w.checked <= maxChecks && w.target.bounds.mayCheck()
}

// A callSite is what the instruction before an address is.
type callSite struct {
	afterCall bool
	direct    bool  // the call names its target
	target    int64 // of a direct call, relative to the address after it
}

// callSites says of addresses whether each is in executable memory right after a
// call instruction. What was said of the code of a module is remembered.
func (w *walker) callSites(ctx context.Context, pcs ...uint64) ([]callSite, error) {
	sites := make([]callSite, len(pcs))
	req := &sdk.ClassifyReturnRequest{Offsets: []uint32{0}}
	var asked []int
	for i, pc := range pcs {
		if !w.isCode(pc - 1) {
			continue
		}
		if s := w.segmentAt(pc - 1); s != nil {
			if known, ok := s.module.returns.Load(s.objectAddress(pc)); ok {
				sites[i] = known.(callSite)
				continue
			}
		}
		length := uint64(w.machine.desc.MaxInstruction)
		buf := make([]byte, length)
		n, err := w.state.ReadMemory(locexpr.DefaultSpace, pc-length, buf)
		if err != nil || n < len(buf) {
			continue
		}
		req.PCs = append(req.PCs, pc)
		req.Code = append(req.Code, buf...)
		req.Offsets = append(req.Offsets, uint32(len(req.Code)))
		asked = append(asked, i)
	}
	if len(asked) == 0 {
		return sites, nil
	}
	answer, err := w.machine.arch.ClassifyReturn(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("checking return addresses: %w", err)
	}
	for k, i := range asked {
		switch answer.Classes[k] {
		case sdk.AfterDirectCall:
			sites[i] = callSite{afterCall: true, direct: true, target: int64(answer.Targets[k] - pcs[i])}
		case sdk.AfterIndirectCall:
			sites[i] = callSite{afterCall: true}
		}
		if s := w.segmentAt(pcs[i] - 1); s != nil && s.module.returned.Add(1) <= maxCachedRows {
			s.module.returns.Store(s.objectAddress(pcs[i]), sites[i])
		}
	}
	return sites, nil
}

// mayHaveCalled says whether the call before pc may have led to f: not where it
// names its target, and all that the target goes on to is known and is not f's
// function. A frame whose PC is no code may have been any function.
func (w *walker) mayHaveCalled(ctx context.Context, pc uint64, site callSite, f *frame) (bool, error) {
	at := w.segmentAt(pc - 1)
	if !site.direct || at == nil || at.module.Object == nil || !w.mayCheck() {
		return true, nil // runtimes change the calls in the code that they make
	}
	if !w.isCode(f.pc) && f.callee != nil {
		return true, nil
	}
	own := w.boundsOf(f)
	waiting := []uint64{(pc + uint64(site.target)) & w.addresses}
	for next := 0; next < len(waiting); next++ {
		if next == maxFollowed {
			return true, nil
		}
		at := waiting[next]
		if at-own.start < own.end-own.start {
			return true, nil
		}
		more, known, err := w.leadsTo(ctx, at, f)
		if err != nil || !known {
			return true, err
		}
		for _, address := range more {
			if !slices.Contains(waiting, address) {
				waiting = append(waiting, address)
			}
		}
	}
	return false, nil
}

// A verdict is what is known of a guessed frame.
type verdict uint8

const (
	refuted   verdict = iota // something known speaks against it
	possible                 // nothing does
	confirmed                // its own caller is a return address of a call that may have led to it
)

// judgeByCallers judges a guessed frame by the rows of its own code and of its
// callers': the return addresses that call frame information finds must be such, of
// calls that may have led to the frames. It ends where nothing is known.
func (w *walker) judgeByCallers(ctx context.Context, f *frame) (verdict, error) {
	v := possible
	for range maxJudged {
		if f.module == nil || !w.mayCheck() {
			return v, nil
		}
		source, err := w.target.row(ctx, f.module, f.offset, f.exact)
		switch {
		case err == nil && source.row == nil && source.outermost != "":
			return confirmed, nil
		case err != nil || source.row == nil || source.by != ByCFI || source.signalFrame() || source.entered:
			return v, nil //nolint:nilerr // without a row nothing is known
		}
		f.source = source
		caller, err := w.recover(f, source)
		switch {
		case err != nil:
			return v, nil //nolint:nilerr // nor where memory or a register is missing
		case caller == nil:
			return confirmed, nil // it is the outermost
		}
		next, err := w.judgeCaller(ctx, f, caller)
		if err != nil || next != confirmed {
			if next == refuted {
				v = refuted
			}
			return v, err
		}
		v, f = confirmed, caller
	}
	return v, nil
}

// maxJudged is how many callers of a guessed frame are looked at.
const maxJudged = 32

// judgeCaller judges the caller that call frame information gives a frame.
func (w *walker) judgeCaller(ctx context.Context, f, caller *frame) (verdict, error) {
	if !w.isCode(caller.pc - 1) {
		return refuted, nil
	}
	if caller.exact || caller.module == nil || !w.isReadable(caller.pc-1) {
		return possible, nil
	}
	sites, err := w.callSites(ctx, caller.pc)
	if err != nil {
		return refuted, err
	}
	if !sites[0].afterCall {
		if w.isEnteredByReturn(caller) {
			return possible, nil
		}
		return refuted, nil
	}
	if may, err := w.mayHaveCalled(ctx, caller.pc, sites[0], f); err != nil || !may {
		return refuted, err
	}
	return confirmed, nil
}

// isEnteredByReturn says whether the PC of a frame, which follows no call, is where
// a function begins that is returned to: a signal trampoline, or what is below the
// first function of a context.
func (w *walker) isEnteredByReturn(f *frame) bool {
	if f.module.Object == nil {
		return true
	}
	b := f.module.boundsAt(f.offset)
	return b.known && f.offset-b.start <= uint64(w.machine.desc.CallDistance)
}

// isReadable says whether the target has the byte at an address.
func (w *walker) isReadable(address uint64) bool {
	n, _ := w.state.ReadMemory(locexpr.DefaultSpace, address, w.scratch[:1])
	return n == 1
}

// boundsOf are the addresses of the function of f, as far as they are known; of
// others, its PC alone.
func (w *walker) boundsOf(f *frame) codeBounds {
	distance := f.offset - f.lookup
	bounds := codeBounds{start: f.pc - distance, end: f.pc - distance + 1}
	if f.module == nil || f.module.Object == nil {
		return bounds
	}
	if b := f.module.boundsAt(f.lookup); b.known {
		bounds.start -= f.lookup - b.start
		bounds.end = bounds.start + b.end - b.start
	}
	return bounds
}

// leadsTo are the addresses that the code at an address goes on to without a
// call. known is false where that is not known, or where the code is the same as
// f's as far as anybody can say.
func (w *walker) leadsTo(ctx context.Context, address uint64, f *frame) (to []uint64, known bool, err error) {
	at := w.segmentAt(address)
	if at == nil || at.module.Object == nil || at.module.made != nil || at.module.arch == nil {
		return nil, false, nil
	}
	e, err := at.module.exits(ctx, at.objectAddress(address))
	if err != nil || e == nil || e.open {
		return nil, false, err
	}
	if f.module == at.module && f.lookup-e.start < e.end-e.start {
		return nil, false, nil
	}
	base := at.start - at.address
	for _, a := range e.jumps {
		to = append(to, a+base)
	}
	for _, slot := range e.slots {
		// What is in a table that the dynamic linker filled in is where the jump led.
		target, err := w.word(slot+base, w.machine.desc.AddressBits)
		if err != nil || !at.module.isLinkageSlot(slot) {
			return nil, false, nil //nolint:nilerr // then it is not known
		}
		to = append(to, target)
	}
	return to, true, nil
}
