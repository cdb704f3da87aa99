// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// scanBytes is how much of a stack is searched for a return address. A frame without call frame
// information is rarely larger, and a word further away is likelier a leftover.
const scanBytes = 16 << 10

// guesses is the state of the guesses of one stack.
type guesses struct {
	stack   []byte   // the bytes that are searched for return addresses
	chain   []uint64 // the CFAs of the believed chain of frame records, ascending
	chained int      // frames of chains that were looked at, at most maxRecords
	checked int      // how many checks were made
}

// reset prepares the state for another stack.
func (g *guesses) reset() { g.chain, g.chained, g.checked = g.chain[:0], 0, 0 }

// buffer returns memory for bytes of the stack, at most scanBytes.
func (g *guesses) buffer(length int) []byte {
	if g.stack == nil {
		g.stack = make([]byte, scanBytes)
	}
	return g.stack[:length]
}

// isInChain reports whether a CFA belongs to the believed chain.
func (g *guesses) isInChain(cfa uint64) bool {
	_, isKnown := slices.BinarySearch(g.chain, cfa)
	return isKnown
}

// mayCheck counts a check; it returns false where there were enough.
func (g *guesses) mayCheck() bool {
	g.checked++
	return g.checked <= maxChecks
}

// errNoCode is the error for a PC that is not in executable memory.
var errNoCode = errors.New("the PC is not in executable memory")

// withoutRow goes on where no row is known, as far as that can be justified.
func (w *walker) withoutRow(ctx context.Context, f *frame, err error) (*frame, trace.Stopped) {
	switch {
	case errors.Is(err, errNoCode) && f.exact:
		// A call through a bad pointer: not one instruction was executed since, except in the
		// handler of the signal that it raised.
		if caller, ok := w.byEntry(ctx, f); ok {
			return caller, trace.Stopped{}
		}
		f.forget()
		return w.afterBadJump(ctx, f, err)
	case errors.Is(err, errNoCode):
		return w.afterBadReturn(ctx, f, err)
	case isNoRow(err):
		return w.guess(ctx, f, err)
	}
	return nil, w.stopFor(err)
}

// afterBadJump goes on above a jump through a bad pointer, in the tail of a function or in one
// without calls: the record of that function may still be the innermost one.
func (w *walker) afterBadJump(ctx context.Context, f *frame, cause error) (*frame, trace.Stopped) {
	caller, err := w.byFramePointer(ctx, f)
	switch {
	case err != nil:
		return nil, w.stopFor(err)
	case caller != nil:
		return caller, trace.Stopped{}
	}
	f.forget()
	return nil, trace.Stopped{Reason: trace.StopNoModule, Detail: cause.Error()}
}

// afterBadReturn goes on above a return address that is no code: it was overwritten. The frame
// pointer that was saved beside it may be intact.
func (w *walker) afterBadReturn(ctx context.Context, f *frame, cause error) (*frame, trace.Stopped) {
	if f.callee != nil && !f.exact {
		caller, err := w.byFramePointer(ctx, f)
		switch {
		case err != nil:
			return nil, w.stopFor(err)
		case caller != nil:
			return caller, trace.Stopped{}
		}
		f.forget()
		if f.pc == 0 && !w.sampling {
			cause = fmt.Errorf("the return address at %#x is 0, and the stack goes on above it: it was written over", w.returnPlace(ctx, f.callee))
		}
	}
	return nil, trace.Stopped{Reason: trace.StopNoModule, Detail: cause.Error()}
}

// returnPlace returns the place of a frame's return address: by its row, else where the
// architecture has it.
func (w *walker) returnPlace(ctx context.Context, f *frame) uint64 {
	if f.source != nil && f.source.Rules != nil {
		if l, err := f.saved(ctx, f.source.Rules.ReturnAddress); err == nil {
			if _, address, ok := l.MemoryAddress(); ok {
				return address
			}
		}
	}
	return f.cfa + uint64(w.machine.returns) //nolint:gosec // it wraps, as addresses do
}

func isNoRow(err error) bool {
	var none *code.NoRow
	return errors.As(err, &none)
}

// guess finds the caller by the frame-pointer convention, else by scanning. Its result is
// marked as a guess, unless the convention is the ABI's.
func (w *walker) guess(ctx context.Context, f *frame, cause error) (*frame, trace.Stopped) {
	stop := trace.Stopped{Reason: trace.StopNoRow, Detail: cause.Error()}
	if f.module == nil {
		stop.Reason = trace.StopNoModule
	}
	f.forget()
	if caller, ok := w.byLink(ctx, f); ok {
		return caller, trace.Stopped{}
	}
	f.forget()
	if caller := w.beforeChain(ctx, f); caller != nil {
		return caller, trace.Stopped{}
	}
	if w.isLastOfChain(ctx, f) {
		return nil, trace.Stopped{Reason: trace.StopOutermost, Detail: "the chain of frames ends"}
	}
	caller, err := w.byFramePointer(ctx, f)
	var none *code.NoRow
	uncalled := errors.As(cause, &none) && none.IsUncalled
	if caller == nil && err == nil && !uncalled {
		f.forget()
		caller, err = w.byScan(ctx, f)
	}
	if err != nil {
		return nil, w.stopFor(err)
	}
	if caller == nil {
		f.forget()
		if w.isContinuation(f) {
			stop = trace.Stopped{Reason: trace.StopOutermost, Detail: "nothing called the code: it was returned to"}
		}
		return nil, stop
	}
	return caller, trace.Stopped{}
}

// isContinuation reports whether a frame is at the start of JIT code that is returned to without
// a call, see code.Continuation. Below the first function of a stack of Erlang there is such code.
func (w *walker) isContinuation(f *frame) bool {
	return !f.exact && f.module != nil && f.lookup == f.offset && f.module.Code.IsJIT() && w.machine.Description.CallDistance > 0
}

// byFramePointer applies the architecture's frame-pointer rule. It is believed when the frame
// lies above the stack pointer and the return address follows a call that may have led to f, or
// is the place of a signal's trampoline, is in JIT code that was not recorded, or begins a chain of
// such frames, or of frames whose code is not here: runtimes and macOS have frame pointers so that
// their stacks can be walked.
func (w *walker) byFramePointer(ctx context.Context, f *frame) (*frame, error) {
	if w.machine.recordSource == nil {
		return nil, nil
	}
	if caller := w.byBackChain(ctx, f); caller != nil {
		return caller, nil
	}
	f.source = w.machine.recordSource
	caller, err := w.recover(ctx, f, f.source)
	if err != nil || caller == nil {
		return nil, nil //nolint:nilerr // the convention does not apply here: no failure
	}
	sp, err := w.stackFloor(ctx, f)
	if err != nil || f.cfa <= sp {
		return nil, nil //nolint:nilerr // nor here
	}
	if w.isUnkept(caller.pc - 1) {
		return caller, nil
	}
	site, err := w.callSite(ctx, caller.pc)
	if err != nil {
		return nil, err
	}
	if site.IsAfterCall {
		if called, err := w.mayHaveCalled(ctx, caller.pc, site, f); err != nil || called != otherwise {
			return caller, err
		}
		return nil, nil
	}
	if w.isUnmappedCode(caller.pc) || w.isUnseenCode(caller.pc) {
		chained, err := w.isChained(ctx, f, caller)
		if err != nil || !chained {
			return nil, err
		}
		caller.forget()
		return caller, nil
	}
	if w.isTrampoline(ctx, caller) {
		return caller, nil
	}
	return nil, nil
}

// isTrampoline reports whether a frame whose PC follows no call is at a signal's trampoline, by
// the rows of its code, which the architecture is asked to read where it has no symbol.
func (w *walker) isTrampoline(ctx context.Context, f *frame) bool {
	if !w.isCode(f.pc) || !w.mayCheck() {
		return false
	}
	row, err := w.findRow(ctx, f)
	return err == nil && row.IsSignalFrame()
}

// isUnkept reports whether an address is in executable memory of no module, whose bytes are not
// in the target.
func (w *walker) isUnkept(address uint64) bool {
	if w.segmentAt(address) != nil {
		return false
	}
	if !w.isCode(address) {
		return false
	}
	return !w.isReadable(address)
}

// byScan takes a word of the stack that is a return address of a call that may have led to f:
// the nearest with evidence for it, else the nearest possible one. The frame records how many
// possible ones lie nearer.
func (w *walker) byScan(ctx context.Context, f *frame) (*frame, error) {
	sp, err := w.stackFloor(ctx, f)
	if err != nil || w.machine.Description.StackAlign == 0 {
		return nil, nil //nolint:nilerr // without a stack pointer there is nothing to scan
	}
	if !w.process.bounds.mayScan() {
		return nil, nil
	}
	s := &scan{walker: w, f: f, isFirst: w.isContinuation(f)}
	var read int
	s.pcs, s.places, read = w.stackWords(sp, scanBytes)
	s.skipOwn(sp)
	if s.sites, err = w.callSites(ctx, s.pcs...); err != nil {
		return nil, err
	}
	w.ahead.scan(s)
	best, passed, err := s.best(ctx)
	w.ahead.targets = w.ahead.targets[:0]
	if err != nil {
		return nil, err
	}
	if best < 0 {
		w.process.bounds.scannedInVain(read)
		return nil, nil
	}
	caller, err := w.scanned(ctx, f, s.pcs[best], s.places[best])
	if caller != nil {
		caller.passed = uint16(min(passed, math.MaxUint16)) //nolint:gosec // bounded
	}
	return caller, err
}

// scan is a search for the return address of a frame among the words of the stack that point
// into code.
type scan struct {
	*walker
	f           *frame
	pcs, places []uint64
	sites       []code.CallSite
	possible    []int // words whose callers are not known
	// isFirst is true where f may be the first frame of its stack, which may be any memory. What
	// lies above is believed if call frame information leads on from there.
	isFirst bool
	reads   int // how often code was read from the target of a call
}

// skipOwn leaves out the word at the place where functions that f called keep their return
// address, if that is at or above the stack pointer of their caller: it leads back to f.
func (s *scan) skipOwn(sp uint64) {
	slot := s.machine.Description.ReturnSlot
	if slot == nil || slot.Offset < 0 {
		return
	}
	i := slices.Index(s.places, sp+uint64(slot.Offset))
	if i < 0 {
		return
	}
	own := s.boundsOf(s.f)
	if isOwn := s.pcs[i]-1-own.Start < own.End-own.Start; isOwn || !s.f.exact {
		s.pcs, s.places = slices.Delete(s.pcs, i, i+1), slices.Delete(s.places, i, i+1)
	}
}

// maxReads bounds how often a scan reads code.
const maxReads = 32

// best returns the index of the word that is taken; -1 for none. passed is how many nearer ones
// may be return addresses too.
func (s *scan) best(ctx context.Context) (best, passed int, err error) {
	unseen := 0 // words before the first possible one whose preceding code is not here
	for i := range s.sites {
		if !s.sites[i].IsAfterCall {
			if s.isUnseenCode(s.pcs[i]) {
				passed++
				if len(s.possible) == 0 {
					unseen++
				}
			}
			continue
		}
		v, err := s.judge(ctx, i)
		switch {
		case err != nil:
			return -1, 0, err
		case v == confirmed:
			return s.linked(ctx, i, passed)
		case v == possible:
			s.possible = append(s.possible, i)
			passed++
		}
	}
	if len(s.possible) > 0 {
		return s.possible[0], unseen, nil
	}
	return -1, 0, nil
}

// maxLinked is how many possible words before a confirmed one are looked at again.
const maxLinked = 16

// linked returns the first of the possible words before a confirmed one whose function is named
// by a call on the stack up to there; else the confirmed one.
func (s *scan) linked(ctx context.Context, last, passed int) (int, int, error) {
	for n, i := range s.possible[:min(len(s.possible), maxLinked)] {
		if s.sites[i].IsDirect {
			continue // it named other code, whose path to f is not known
		}
		caller, err := s.scanned(ctx, s.f, s.pcs[i], s.places[i])
		for k := i + 1; k <= last && err == nil; k++ {
			if !s.sites[k].IsDirect || !s.sites[k].IsAfterCall {
				continue
			}
			var called evidence
			called, err = s.mayHaveCalled(ctx, s.pcs[k], s.sites[k], caller)
			isCalled := called == named
			if called == onward && err == nil {
				isCalled, err = s.isReadBack(ctx, caller, k)
			}
			if isCalled {
				s.f.forget()
				return i, passed - len(s.possible) + n, err
			}
		}
		s.f.forget()
		if err != nil {
			return -1, 0, err
		}
	}
	return last, passed, nil
}

// judge decides about a word that follows a call, by that call and by the callers of its own
// frame. A call that names the function of f confirms the word, if nothing is against it.
func (s *scan) judge(ctx context.Context, i int) (decision, error) {
	called, err := s.mayHaveCalled(ctx, s.pcs[i], s.sites[i], s.f)
	if err != nil || called == otherwise {
		return refuted, err
	}
	if called == onward {
		if is, err := s.isReadBack(ctx, s.f, i); err != nil || is {
			return confirmed, err
		}
	}
	caller, err := s.scanned(ctx, s.f, s.pcs[i], s.places[i])
	if err != nil {
		return refuted, err
	}
	// Where the call may have led elsewhere, old frames that were read from code are no
	// evidence: a stack is full of them.
	v, err := s.judgeByCallers(ctx, caller, called == onward || s.isFirst)
	switch {
	case s.isFirst && v != confirmed:
		v = refuted
	case called == named && v != refuted, called == anywhere && v == likely:
		v = confirmed
	case v == likely:
		v = possible
	}
	s.f.forget()
	return v, err
}

// isReadBack reports whether the function of f, whose bounds are not known, begins at the
// target of the call before a word: read from there, its return address is in that very word.
func (s *scan) isReadBack(ctx context.Context, f *frame, i int) (bool, error) {
	site := s.sites[i]
	if !site.IsDirect || f.module == nil || !f.module.Code.IsKnown() || f.module.Code.BoundsAt(f.lookup).IsKnown || s.reads == maxReads {
		return false, nil
	}
	target := (s.pcs[i] + uint64(site.Target)) & s.machine.addresses
	segment := s.segmentAt(target)
	if segment == nil || segment.Module != f.module || !s.process.bounds.mayRead() {
		return false, nil
	}
	s.reads++
	rules, err := f.module.Code.RowFrom(ctx, segment.ObjectAddress(target), f.lookup, f.exact)
	if err != nil || rules == nil {
		return false, err
	}
	defer f.forget()
	f.source = &code.Row{Rules: rules, By: trace.ByScan, Defaults: s.machine.Defaults}
	if caller, err := s.recover(ctx, f, f.source); err != nil || caller == nil || caller.pc != s.pcs[i] {
		return false, nil // it does not begin there
	}
	column, indexed := s.index(rules.ReturnAddress)
	back, err := f.findSaved(ctx, rules.ReturnAddress, column, indexed)
	return err == nil && back.kind == slotMemory && back.bits == s.places[i], nil
}

// scanned returns the frame of a return address that a scan found at a place of the stack.
func (w *walker) scanned(ctx context.Context, f *frame, pc, place uint64) (*frame, error) {
	cfa := place - uint64(w.machine.returns) //nolint:gosec // it wraps, as addresses do
	row, err := w.scannedRow(ctx, f, cfa)
	if err != nil {
		return nil, err
	}
	return w.afterReturn(ctx, f, pc, cfa, row, cfi.Undefined), nil
}

// insteadOfRead returns the caller of f where reading its code gave an impossible return
// address. Code that is entered by a jump, with a frame that was made elsewhere, reads like a
// function too, and its return address is then any word: the caller is guessed, if possible.
// Otherwise the return address of a function was overwritten, and it is shown; in JIT code
// there are no bounds that tell these two cases apart.
func (w *walker) insteadOfRead(ctx context.Context, f *frame, source *code.Row) (*frame, trace.Stopped) {
	caller, stop := w.guess(ctx, f, errNoReturn)
	if caller != nil || f.module == nil || f.module.Code.IsJIT() {
		return caller, stop
	}
	f.source = source
	caller, err := w.recover(ctx, f, source)
	if err != nil {
		return nil, w.stopFor(err)
	}
	return caller, trace.Stopped{}
}

// errNoReturn is the error where reading code gave an impossible return address.
var errNoReturn = errors.New("the return address that reading the code gives follows no call")

// mayReturnTo reports whether the PC of a frame that was found by reading code may be a return
// address: it is in code. In JIT code it also follows a call, as far as can be seen, or is the
// start of a function that is returned to.
func (w *walker) mayReturnTo(ctx context.Context, f *frame) (bool, error) {
	if f.exact {
		return true, nil
	}
	if !w.isCode(f.pc - 1) {
		return w.isCode(f.pc), nil
	}
	isJIT := f.callee.module == nil || f.callee.module.Code.IsJIT() || f.callee.module.Code.IsUnmapped()
	if !isJIT || f.module == nil || !w.isReadable(f.pc-1) {
		return true, nil // functions of files may have got other return addresses, as Go's on other stacks do
	}
	site, err := w.callSite(ctx, f.pc)
	if err != nil || site.IsAfterCall || w.isEnteredByReturn(f) {
		return true, err
	}
	source, err := w.rowAt(ctx, f, false)
	return err == nil && (source.IsSignalFrame() || source.IsEntered), nil
}

// byEntry finds the caller of a function that has executed nothing, by the architecture's rule,
// if its return address follows a call that may have led to f, or is in code that is not here.
func (w *walker) byEntry(ctx context.Context, f *frame) (*frame, bool) {
	pc, err := w.entryReturn(ctx, f)
	if err != nil {
		return nil, false
	}
	site, err := w.callSite(ctx, pc)
	if err != nil || !site.IsAfterCall && !w.isUnseenCode(pc) {
		return nil, false
	}
	if called, err := w.mayHaveCalled(ctx, pc, site, f); err != nil || called == otherwise {
		return nil, false
	}
	f.source = w.machine.entrySource
	caller, err := w.recover(ctx, f, f.source)
	return caller, err == nil && caller != nil
}

// errNoEntry is the error for an architecture without a rule for a function that has executed
// nothing.
var errNoEntry = errors.New("where a call puts its return address is not known")

// entryReturn returns the return address of a function that has executed nothing. It is checked
// before a frame is made of it, because it is mostly none: many samples are of processes that
// have no stack yet.
func (w *walker) entryReturn(ctx context.Context, f *frame) (pc uint64, err error) {
	if w.machine.entrySource == nil {
		return 0, errNoEntry
	}
	row := w.machine.entrySource.Rules
	switch back, _ := row.Rule(row.ReturnAddress); back.Kind {
	case cfi.Offset:
		if row.CFA.Kind != cfi.CFARegister || row.CFA.Space != locexpr.DefaultSpace {
			return w.placedReturn(ctx, f)
		}
		if pc, err = f.value(ctx, uint64(w.machine.Description.SP)); err == nil {
			pc, err = w.word(ctx, pc+uint64(row.CFA.Offset+back.Offset), w.machine.Description.AddressBits) //nolint:gosec // its bits
		}
	case cfi.Register:
		pc, err = f.value(ctx, back.Register)
	default:
		pc, err = f.value(ctx, row.ReturnAddress)
	}
	return stripped(pc, w.thread.binding.ReturnAddressMask), err
}

// placedReturn returns the return address of a function that has executed nothing, where its CFA
// is in another space, or has to be evaluated.
func (w *walker) placedReturn(ctx context.Context, f *frame) (uint64, error) {
	f.source = w.machine.entrySource
	defer f.forget()
	caller, err := w.recover(ctx, f, f.source)
	if err != nil {
		return 0, err
	}
	if caller == nil {
		return 0, errNoEntry
	}
	return caller.pc, nil
}

// byLink finds the caller of the top frame, or of one that a signal interrupted, where a call
// leaves the return address in a register and f may have left it there. In a function that
// called another one the register still points after that call.
func (w *walker) byLink(ctx context.Context, f *frame) (*frame, bool) {
	if !w.machine.hasLink || !f.exact || f.module == nil {
		return nil, false
	}
	caller, ok := w.byEntry(ctx, f)
	if !ok || caller.module == nil {
		return nil, false
	}
	return caller, w.isOtherFunction(f, caller) && !w.isInRecord(ctx, f, caller.pc)
}

// isInRecord reports whether the frame record that the frame pointer of f leads to has a return address, so that the
// record is f's own.
func (w *walker) isInRecord(ctx context.Context, f *frame, pc uint64) bool {
	if !w.machine.hasRecords {
		return false
	}
	sp, err := f.value(ctx, uint64(w.machine.Description.SP))
	if err != nil {
		return false
	}
	pointer, err := f.value(ctx, uint64(w.machine.Description.FP))
	if err != nil {
		return false
	}
	r, ok := w.readRecord(ctx, pointer, sp)
	return ok && r.pc == pc
}

// maxUnseen is the size that a function is not taken to exceed whose code and bounds are not here.
const maxUnseen = 64 << 10

// isOtherFunction reports whether the PC of a frame is in another function than f's.
func (w *walker) isOtherFunction(f, other *frame) bool {
	if f.module.Code.IsKnown() {
		if own := f.module.Code.BoundsAt(f.lookup); own.IsKnown {
			return other.module != f.module || other.lookup < own.Start || other.lookup >= own.End
		}
	}
	if !w.isUnseenCode(f.pc + 1) {
		return false
	}
	return other.module != f.module || max(other.lookup, f.lookup)-min(other.lookup, f.lookup) > maxUnseen
}

// stackFloor returns the stack pointer of f; where the guess that found f does not give it, the
// address that identifies the frame further in.
func (w *walker) stackFloor(ctx context.Context, f *frame) (uint64, error) {
	sp, err := f.value(ctx, uint64(w.machine.Description.SP))
	if err != nil && w.machine.hasLink && f.callee != nil && f.callee.hasCFA {
		return f.callee.cfa, nil
	}
	return sp, err
}

// afterReturn returns the caller whose return address is pc, where that of f is by its CFA. Its
// registers follow from row and others.
func (w *walker) afterReturn(ctx context.Context, f *frame, pc, cfa uint64, row *cfi.Row, others cfi.RuleKind) *frame {
	f.source = &code.Row{Rules: row, By: trace.ByScan, Defaults: code.AllColumns(others)}
	f.cfa, f.cfaSpace, f.hasCFA = cfa, locexpr.DefaultSpace, true
	w.placeBehindCall(ctx, f)
	f.settle(0)
	caller := w.frame(f.index + 1)
	caller.callee, caller.pc, caller.found, caller.restsOnGuess = f, pc, trace.ByScan, f.isGuess()
	w.place(caller)
	return caller
}
