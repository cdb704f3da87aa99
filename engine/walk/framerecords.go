// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A frame record is the pair that a function with a frame pointer saves: the caller's frame
// pointer and, beside it, the return address. Records are linked by the saved frame pointers.

const (
	// maxRecords bounds how far the chains of frame records of a stack are followed. A
	// thread of a virtual machine whose stack ran over has some ten thousand frames.
	maxRecords = 1 << 14
	// maxRecordStep is how far away the next record of a chain may be. A frame is rarely
	// larger, and a record further away may be on another stack.
	maxRecordStep = 1 << 20
)

// recordShape is the place of a frame record: the CFA is base above the frame
// pointer; the caller's frame pointer and the return address are at offsets from
// the CFA.
type recordShape struct {
	base, saved, returns int64
}

// newRecordShape reads the shape from an architecture's frame-pointer rule. ok is
// false where records are not two words of memory.
func newRecordShape(d *sdk.Description) (s recordShape, ok bool) {
	row := d.FramePointer
	if row == nil || row.CFA.Kind != cfi.CFARegister || row.CFA.Register != uint64(d.FP) {
		return s, false
	}
	saved, _ := row.Rule(uint64(d.FP))
	returns, _ := row.Rule(row.ReturnAddress)
	if saved.Kind != cfi.Offset || returns.Kind != cfi.Offset {
		return s, false
	}
	return recordShape{row.CFA.Offset, saved.Offset, returns.Offset}, true
}

// frameRecord is a frame record that was read.
type frameRecord struct {
	cfa   uint64 // of the function that saved it
	saved uint64 // the caller's frame pointer
	pc    uint64 // the return address
}

// readRecord reads the record at a frame pointer. It lies above an address of the stack, and
// there is only memory without code between.
func (w *walker) readRecord(ctx context.Context, pointer, above uint64) (r frameRecord, ok bool) {
	m := w.machine
	r.cfa = pointer + uint64(m.record.base)
	align := uint64(max(m.Description.StackAlign, 1))
	if !m.hasRecords || pointer%align != 0 || pointer < above || r.cfa < pointer || !w.isOneStack(above, r.cfa-1) {
		return r, false
	}
	var err error
	if r.saved, err = w.word(ctx, r.cfa+uint64(m.record.saved), m.Description.AddressBits); err != nil {
		return r, false
	}
	r.pc, err = w.word(ctx, r.cfa+uint64(m.record.returns), m.Description.AddressBits)
	r.pc = stripped(r.pc, w.thread.binding.ReturnAddressMask)
	return r, err == nil
}

// isOneStack reports whether two addresses may be in one stack: everything between them is
// memory without code, or executable like the stack itself.
func (w *walker) isOneStack(first, last uint64) bool {
	if last-first > maxRecordStep {
		return false
	}
	_, isExecutable := w.input.memory.Mapped(first)
	for address := first; ; address = (address | (code.CodeWindow - 1)) + 1 {
		if address > last || address < first {
			return true
		}
		if w.inSample(address) {
			continue
		}
		if mapped, executable := w.input.memory.Mapped(address); !mapped || executable && !isExecutable {
			return false
		}
	}
}

// inSample reports whether an address is in the recorded bytes of a stack.
func (w *walker) inSample(address uint64) bool {
	return w.input.sample != nil && address-w.input.sample.StackStart < uint64(len(w.input.sample.Stack))
}

// isChained reports whether the record of f, which leads to caller, is believed because of the
// chain that it begins. Interpreters and JIT compilers put code in memory of no module, and
// enter it by jumps: the return addresses of such frames follow no call. But a chain of frames
// that ascends, stays in one stack, leads only through such code and ends at a return address
// in a module, after a call and with call frame information, is no coincidence. Frames of the
// chain that their code describes need no record.
//
// Nor can calls be checked in code that is not here: minidumps have none, and the files of
// their modules may be elsewhere. Such a chain may also end at the outermost frame, which
// isMarkedOutermost recognises.
//
// Frames further out than f are overwritten.
func (w *walker) isChained(ctx context.Context, f, caller *frame) (bool, error) {
	if w.guesses.isInChain(f.cfa) {
		return true, nil
	}
	w.guesses.chain = append(w.guesses.chain[:0], f.cfa)
	for g := caller; w.guesses.chained < maxRecords && w.process.bounds.mayCheck(); w.guesses.chained++ {
		if ends, err := w.endsChain(ctx, g); err != nil || ends {
			return ends, err
		}
		if w.isUnseenCode(g.pc) && w.isMarkedOutermost(ctx, g) {
			return true, nil
		}
		next := w.nextOfChain(ctx, g)
		if next == nil {
			break
		}
		w.guesses.chain = append(w.guesses.chain, g.cfa)
		g = next
	}
	w.guesses.chain = w.guesses.chain[:0]
	return false, nil
}

// nextOfChain returns the caller of a frame of a chain; nil where the chain breaks.
func (w *walker) nextOfChain(ctx context.Context, g *frame) *frame {
	if !w.isUnmappedCode(g.pc) && !w.isUnseenCode(g.pc) {
		return nil
	}
	source, err := w.findRow(ctx, g)
	if err != nil {
		source = w.machine.recordSource
	}
	g.source = source
	next, err := w.recover(ctx, g, source)
	if err != nil || next == nil || !g.hasCFA || g.cfa <= g.callee.cfa || !w.isOneStack(g.callee.cfa, g.cfa-1) {
		return nil
	}
	return next
}

// isUnmappedCode reports whether a return address is in executable memory of no code object.
func (w *walker) isUnmappedCode(pc uint64) bool {
	if !w.isCode(pc - 1) {
		return false
	}
	s := w.segmentAt(pc - 1)
	return s == nil || s.Module.Code.IsUnmapped()
}

// maxArguments is more than programs usually have arguments, and less than any address of code.
const maxArguments = 1 << 12

// isMarkedOutermost reports whether the frame pointer of a frame is 0, which marks the
// outermost one (x86-64's psABI, 3.4.1; AAPCS64, 6.4.6), or leads to a record of zeros, as in
// the first function of a thread on macOS. In place of the second zero is the number of the
// program's arguments where macOS 10 calls main.
func (w *walker) isMarkedOutermost(ctx context.Context, f *frame) bool {
	fp, err := f.value(ctx, uint64(w.machine.Description.FP))
	if err != nil || fp == 0 {
		return err == nil
	}
	r, ok := w.readRecord(ctx, fp, f.callee.cfa)
	return ok && r.saved == 0 && r.pc < maxArguments
}

// isUnseenCode reports whether a return address is in a module of which neither the code's file
// nor the bytes before the address are here.
func (w *walker) isUnseenCode(pc uint64) bool {
	s := w.segmentAt(pc - 1)
	return s != nil && !s.Module.HasCodeAt(s.ObjectAddress(pc-1)) && !s.Module.Code.IsUnmapped() && w.isCode(pc-1) && !w.isReadable(pc-1)
}

// endsChain reports whether the PC of a frame is a return address in a module, after a
// call as far as its code is here, and in code whose frames are described.
func (w *walker) endsChain(ctx context.Context, f *frame) (bool, error) {
	if f.module == nil || f.module.Code.IsUnmapped() {
		return false, nil
	}
	site, err := w.callSite(ctx, f.pc)
	if err != nil || !site.IsAfterCall && !w.isUnseenCode(f.pc) {
		return false, err
	}
	source, err := w.row(ctx, f, false)
	return err == nil && source.By.IsDescribed(), nil
}

// isRecord reports whether a value is the frame pointer of a frame above an address: the record
// there has a return address.
func (w *walker) isRecord(ctx context.Context, pointer, above uint64) (bool, error) {
	r, ok := w.readRecord(ctx, pointer, above)
	if !ok {
		return false, nil
	}
	if w.isUnmappedCode(r.pc) {
		return true, nil
	}
	site, err := w.callSite(ctx, r.pc)
	return err == nil && site.IsAfterCall, err
}

// scannedRow returns the row of a frame whose return address was found by scanning, right below
// cfa. The stack pointer of the caller follows from it. Its frame pointer is in the frame
// record, if there is one at the return address; else the function left it unchanged, if it
// still points to a record above.
func (w *walker) scannedRow(ctx context.Context, f *frame, cfa uint64) (*cfi.Row, error) {
	m := w.machine
	if !m.hasRecords {
		return m.returnRow, nil
	}
	if saved, err := w.word(ctx, cfa+uint64(m.record.saved), m.Description.AddressBits); err == nil {
		if ok, err := w.isRecord(ctx, saved, cfa); err != nil || ok {
			return m.recordRow, err
		}
	}
	if pointer, err := f.value(ctx, uint64(m.Description.FP)); err == nil {
		if ok, err := w.isRecord(ctx, pointer, cfa); err != nil || ok {
			return m.keptRow, err
		}
	}
	return m.returnRow, nil
}

// hasStackAbove reports whether the memory right above an address looks like frames:
// a word there is a return address.
func (w *walker) hasStackAbove(ctx context.Context, address uint64) (bool, error) {
	pcs, _, _ := w.stackWords(address, aboveBytes)
	// The first function of a thread has the thread's function as an argument, behind whatever call.
	pcs = slices.DeleteFunc(pcs, w.isFunctionStart)
	sites, err := w.callSites(ctx, pcs...)
	return err == nil && slices.ContainsFunc(sites, func(s code.CallSite) bool { return s.IsAfterCall }), err
}

// isFunctionStart reports whether a function is known to begin at an address.
func (w *walker) isFunctionStart(pc uint64) bool {
	s := w.segmentAt(pc)
	if s == nil {
		return false
	}
	address := s.ObjectAddress(pc)
	b := s.Module.Code.BoundsAt(address)
	return b.IsKnown && b.Start == address
}

// aboveBytes is how much of a stack is looked at to see if it continues.
const aboveBytes = 1 << 10

// stackWords returns the words of the stack from an address on that point into the code of
// modules, and their places; read is how many bytes there were.
func (w *walker) stackWords(start uint64, length int) (pcs, places []uint64, read int) {
	word := uint64(w.machine.Description.AddressBits+7) / 8
	step := uint64(max(w.machine.Description.StackAlign, 1))
	start = (start + step - 1) / step * step
	buf := w.guesses.buffer(length)
	n, _ := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, start, buf)
	for offset := uint64(0); offset+word <= uint64(n); offset += step {
		pc := stripped(integer(buf[offset:offset+word], w.machine.Order), w.thread.binding.ReturnAddressMask)
		if m := w.segmentAt(pc - 1); m != nil && !m.Module.Code.IsUnmapped() {
			pcs, places = append(pcs, pc), append(places, start+offset)
		}
	}
	return pcs, places, n
}
