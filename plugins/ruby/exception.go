// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// This file reads the exception that a thread has raised.

// maxCallers bounds the callers in the trace of an exception.
const maxCallers = 1 << 14

// exception returns the exception on its way through a thread; nil: there is none. The error says why
// it is not whole. While Ruby executes code that follows in any case, the innermost frame of such code
// has it.
func (r *reader) exception(ec uint64, frames []*frame) (*sdk.ManagedException, error) {
	object, err := r.word("the exception of a thread", ec+r.ecError)
	if err != nil {
		return nil, err
	}
	is, err := r.isException(object)
	if err == nil && !is {
		object = 0
		for _, f := range frames {
			if f.sequence == nil || f.sequence.kind != sequenceEnsure || f.flags&frameKindMask != frameHandler {
				continue
			}
			const lastLocal = 24 // before the environment
			if object, err = r.word("the exception of a frame", f.ep-lastLocal); err != nil {
				return nil, err
			}
			break
		}
		is, err = r.isException(object)
	}
	if err != nil || !is {
		return nil, err
	}
	e := &sdk.ManagedException{}
	if e.Type, err = r.classOf(object); err != nil || e.Type == "" {
		return nil, err
	}
	message, trace, err := r.exceptionParts(object)
	if text, err := r.text(message); err == nil {
		e.Text = text
	}
	if err == nil && trace != r.nilValue && trace != 0 {
		e.Frames, err = r.callers(trace)
	}
	return e, err
}

// exceptionParts returns the message and the trace of an exception, which are its first two
// variables. A class may have others before them: those are nothing of the kind.
func (r *reader) exceptionParts(object uint64) (message, trace uint64, err error) {
	const inObject = 1 << 13
	flags, err := r.flags("an exception", object, typeObject, typeData)
	if err != nil || flags&typeMask == typeData {
		return 0, 0, err
	}
	place := object + 16
	if flags&inObject == 0 {
		at := uint64(24)
		if r.isTextLong {
			at = 16
		}
		if place, err = r.word("the variables of an exception", object+at); err != nil {
			return 0, 0, err
		}
	}
	b, err := r.Bytes(place, 16)
	if err != nil {
		return 0, 0, fmt.Errorf("the variables of an exception: %w", err)
	}
	message, trace = r.Number(b[:8]), r.Number(b[8:])
	if trace != r.nilValue {
		if _, err := r.flags("the trace of an exception", trace, typeData, typeArray); err != nil {
			return 0, 0, err
		}
	}
	return message, trace, nil
}

// callers returns the frames of a trace, innermost first; none where one is wrong. A trace that the
// program set is an Array, and has none.
func (r *reader) callers(trace uint64) ([]sdk.ManagedFrame, error) {
	flags, err := r.flags("a trace", trace, typeData, typeArray)
	if err != nil || flags&typeMask == typeArray {
		return nil, err
	}
	const dataKind, dataPlace, isInData = 24, 32, 2
	place := trace + dataPlace
	if kind, err := r.word("a trace", trace+dataKind); err != nil || kind&isInData == 0 {
		if place, err = r.word("a trace", place); err != nil {
			return nil, err
		}
	}
	count, err := r.Uint(place+r.traceCount, 4)
	if err == nil && (count > maxCallers || count < r.traceLeft) {
		err = fmt.Errorf("a trace has %d callers, expected %d to %d", count, r.traceLeft, maxCallers)
	}
	if err != nil {
		return nil, err
	}
	count -= r.traceLeft
	first := place + r.traceFirst
	if !r.isTraceInline {
		if first, err = r.word("a trace", first); err != nil {
			return nil, err
		}
	}
	b, err := r.Bytes(first, count*r.callerSize)
	if err != nil {
		return nil, fmt.Errorf("the callers of a trace: %w", err)
	}
	list := make([]sdk.ManagedFrame, 0, count)
	for i := range count {
		f, err := r.caller(b[i*r.callerSize:][:r.callerSize])
		if err == nil && f.Function == "" {
			err = fmt.Errorf("caller %d of a trace has no function", i)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if r.isTraceOutward {
		slices.Reverse(list)
	}
	return list, nil
}

// caller returns the frame that a caller stands for. One that is written in C has the place of its
// own caller.
func (r *reader) caller(b []byte) (f sdk.ManagedFrame, err error) {
	if r.isTraceOutward {
		return r.outwardCaller(b, 0)
	}
	const kindC, nameAt = 2, 24
	f.Kind = sdk.Interpreted
	address, pc := r.Number(b[r.callerIseq:][:8]), r.Number(b[r.callerIseq+8:][:8])
	var s *sequence
	if address != 0 {
		if s, err = r.sequence(address); err != nil {
			return f, err
		}
		f.Function, f.File, f.Line = s.label, s.path, s.firstLine
		if pc != 0 {
			if f.Line, err = r.line(s, pc); err != nil {
				return f, err
			}
		}
	}
	if r.isQualified {
		return f, r.qualifyCaller(&f, r.Number(b[:8]), s)
	}
	if r.Number(b[:4]) == kindC {
		f.Kind = sdk.Builtin
		f.Function, err = r.name(r.Number(b[nameAt:][:8]))
	}
	return f, err
}

// outwardCaller is caller for versions in which a caller in C leads to its own.
func (r *reader) outwardCaller(b []byte, depth int) (f sdk.ManagedFrame, err error) {
	const kindPC, kindLine, kindC = 1, 2, 3
	first, second := r.Number(b[r.callerIseq:][:8]), r.Number(b[r.callerIseq+8:][:8])
	switch kind := r.Number(b[:4]); {
	case kind == kindPC || kind == kindLine:
		s, err := r.sequence(first)
		if err != nil {
			return f, err
		}
		f = sdk.ManagedFrame{Kind: sdk.Interpreted, Function: s.label, File: s.path, Line: uint32(second & maxLine)} //nolint:gosec // checked
		if kind == kindPC {
			f.Line, err = r.line(s, second)
		}
		return f, err
	case kind != kindC || depth > maxCallers:
		return f, fmt.Errorf("a caller is of the kind %d, expected %d to %d", kind, kindPC, kindC)
	}
	if second != 0 {
		own, err := r.Bytes(second, r.callerSize)
		if err == nil {
			f, err = r.outwardCaller(own, depth+1)
		}
		if err != nil {
			return f, err
		}
	}
	f.Kind = sdk.Builtin
	f.Function, err = r.name(first)
	return f, err
}

// qualifyCaller names a caller by its method; 0: it has none.
func (r *reader) qualifyCaller(f *sdk.ManagedFrame, method uint64, s *sequence) (err error) {
	if method != 0 {
		m, err := r.readMethod(method)
		if err != nil {
			return err
		}
		if m.isC {
			f.Kind, f.Function = sdk.Builtin, m.name
			return nil
		}
		if s != nil {
			f.Function, err = r.labelIn(s, m.owner)
			return err
		}
	}
	if s != nil {
		f.Function, err = r.labelIn(s, 0)
	}
	return err
}
