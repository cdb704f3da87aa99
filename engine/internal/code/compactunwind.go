// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file has the rows of Mach-O files (mach-o/compact_unwind_encoding.h). An encoding has the frame of
// a function's body: it is right at calls, and says nothing of prologues and epilogues. The same is true
// of the call frame information of Apple's compilers, which has no rows of epilogues. Of code that is
// about to execute, the code itself has the rows.

// compactUnwind is the compact unwind information of a Mach-O file, and the starts of its functions.
type compactUnwind struct {
	object *Object
	file   *macho.File
	info   *macho.UnwindInfo // nil: there is none
}

// hasCompactUnwind reports whether the object is a Mach-O file with compact unwind information. The
// .debug_frame of its dSYM has the same functions, and no rows of epilogues either.
func (o *Object) hasCompactUnwind() bool {
	if o.File == nil || !o.File.IsMachO() {
		return false
	}
	info, err := o.File.MachO().UnwindInfo()
	return err == nil && info != nil
}

func newCompactUnwind(o *Object) RowSource {
	if o.File == nil || !o.File.IsMachO() {
		return nil
	}
	f := o.File.MachO()
	info, err := f.UnwindInfo()
	if err != nil {
		o.problem("%v", err)
	}
	return compactUnwind{o, f, info}
}

func (s compactUnwind) Row(ctx context.Context, l *Lookup) (*Row, error) {
	if start, end, ok := s.file.FunctionAt(l.Address); ok {
		l.bound(Bounds{Start: start, End: end, IsKnown: true})
	}
	if s.info == nil {
		return nil, nil
	}
	e, ok, err := s.info.At(l.Address)
	switch {
	case err != nil:
		l.problem("%v", err)
		return nil, noRow(err.Error())
	case !ok:
		return nil, nil
	}
	switch s.info.Mode(e.Encoding) {
	case macho.NoUnwind:
		return nil, nil
	case macho.DWARFMode:
		return nil, noRow("the compact unwind encoding names an FDE, and no FDE has the address")
	}
	body := new(cfi.Row)
	if err := s.info.Row(&e, body); err != nil {
		l.problem("%v", err)
		return nil, noRow(err.Error())
	}
	if l.IsExact {
		return s.object.exactBody(ctx, l, body)
	}
	if _, isSaved := body.Rule(body.ReturnAddress); !isSaved {
		return nil, noRow("by its compact unwind encoding the function keeps its return address in a register, so that it calls nothing")
	}
	return &Row{Rules: body, By: trace.ByCompactUnwind}, nil
}

// inEpilogue returns the row of an instruction that is about to execute in a function of a Mach-O file,
// read from the code, where that has another CFA than call frame information that never returns to the
// state of the function's entry; else nil.
func (o *Object) inEpilogue(ctx context.Context, l *Lookup, fde *cfi.FDE, found *cfi.Row) *Row {
	entry, symbols := o.machine.Description.Entry, o.debug.resolver
	if !l.IsExact || o.File == nil || !o.File.IsMachO() || l.isInjected || fde.CIE.SignalFrame || entry == nil || symbols != nil && symbols.HasGo() {
		return nil
	}
	var last cfi.Row
	if err := fde.RowAt(fde.End-1, &last); err != nil || isFrameOf(&last, entry) {
		return nil
	}
	rules, err := o.code.rules(ctx, l.codeRequest(fdeBounds(fde)))
	if err != nil {
		return nil
	}
	row := rowIn(rules.Rows, l.Address)
	if row == nil || row.CFA.Register != found.CFA.Register || row.CFA.Offset >= found.CFA.Offset || !hasFrame(rules.Rows, found) {
		return nil
	}
	return &Row{Rules: row, By: trace.ByRules, Defaults: o.machine.Defaults, IsComplete: rules.Complete}
}

// exactBody returns the row of an instruction that is about to execute in a function whose body has a
// row: read from the code, or the body's where both agree. Where the code gives none, the body's is a guess: the
// instruction may be in the prologue or an epilogue, unless the function has neither.
func (o *Object) exactBody(ctx context.Context, l *Lookup, body *cfi.Row) (*Row, error) {
	rules, err := o.code.rules(ctx, l.codeRequest(l.Bounds))
	if err != nil {
		return nil, err
	}
	row, entry := rowIn(rules.Rows, l.Address), o.machine.Description.Entry
	switch {
	case row == nil && (entry == nil || !isFrameOf(entry, body)):
		return &Row{Rules: body, By: trace.ByFunctionBody}, nil
	case row == nil || isFrameOf(row, body):
		return &Row{Rules: body, By: trace.ByCompactUnwind}, nil
	}
	return &Row{Rules: row, By: trace.ByRules, Defaults: o.machine.Defaults, IsComplete: rules.Complete}, nil
}

// RowsAroundBody calls yield with the rows of code of a function whose body has a row, until it returns false, which is
// the result. Rows that were read from the code are by address, and are replaced by the body's where both agree; code
// of none has the body's. A nil body has no row.
func RowsAroundBody(read []cfi.Row, body *cfi.Row, start, end uint64, yield func(*cfi.Row) bool) bool {
	agrees := isFrameOf
	if body != nil && isKeptInRegister(read) {
		agrees = func(row, body *cfi.Row) bool { return isFrameOf(row, body) || hasReturnOf(row, body) }
	}
	return rowsAround(read, body, start, end, agrees, yield)
}

// isKeptInRegister reports whether a function is entered with its return address in a register. Code that has changed
// the register by a call is in the body.
func isKeptInRegister(read []cfi.Row) bool {
	if len(read) == 0 {
		return false
	}
	rule, _ := read[0].Rule(read[0].ReturnAddress)
	return rule.Kind != cfi.Offset
}

// hasReturnOf reports whether two rows have the return address at the same place in memory.
func hasReturnOf(a, b *cfi.Row) bool {
	x, _ := a.Rule(a.ReturnAddress)
	y, _ := b.Rule(b.ReturnAddress)
	return x.Kind == cfi.Offset && y.Kind == cfi.Offset && x.Offset == y.Offset
}

// rowsAround is RowsAroundBody with a function that reports whether a row that was read agrees with the body's.
func rowsAround(read []cfi.Row, body *cfi.Row, start, end uint64, agrees func(row, body *cfi.Row) bool, yield func(*cfi.Row) bool) bool {
	part := func(row *cfi.Row, from, to uint64) bool {
		if from >= to || row == nil {
			return true
		}
		piece := *row
		piece.Start, piece.End = from, to
		return yield(&piece)
	}
	first := sort.Search(len(read), func(i int) bool { return read[i].End > start })
	for i := first; i < len(read) && read[i].Start < end; i++ {
		row := &read[i]
		from, to := max(row.Start, start), min(row.End, end)
		if from >= to || !isCFA(row) || body != nil && agrees(row, body) {
			continue
		}
		if !part(body, start, from) || !part(row, from, to) {
			return false
		}
		start = to
	}
	return part(body, start, end)
}

// RowsAroundFDE calls yield with the rows of an FDE, and with rows that were read from the code of its function
// where these are others: in prologues and epilogues, which FDEs for macOS leave out. Rows of the code count
// if they find the return address where the FDE has it at calls.
func RowsAroundFDE(read []cfi.Row, fde *cfi.FDE, yield func(*cfi.Row) bool) error {
	atCalls, ok := lastingFrame(fde)
	if !ok || fde.CIE.SignalFrame || !hasFrame(read, &atCalls) {
		return fde.Rows(yield)
	}
	return fde.Rows(func(row *cfi.Row) bool {
		if row.CFA.Kind != cfi.CFARegister {
			return yield(row)
		}
		return rowsAround(read, row, row.Start, row.End, hasCallerOf, yield)
	})
}

// hasCallerOf reports whether two rows have the same CFA and return address. One that is read from the code has no rule
// of a saved register that did not change yet.
func hasCallerOf(a, b *cfi.Row) bool {
	x, _ := a.Rule(a.ReturnAddress)
	y, _ := b.Rule(b.ReturnAddress)
	return a.CFA.Kind == b.CFA.Kind && a.CFA.Register == b.CFA.Register && a.CFA.Offset == b.CFA.Offset && x.Kind == y.Kind && x.Offset == y.Offset
}

// isFrameOf reports whether a row has the CFA of a body's, and all that is saved in the body.
func isFrameOf(row, body *cfi.Row) bool {
	if row.CFA.Kind != body.CFA.Kind || row.CFA.Register != body.CFA.Register || row.CFA.Offset != body.CFA.Offset {
		return false
	}
	return !slices.ContainsFunc(body.Rules, func(r cfi.RegisterRule) bool {
		rule, _ := row.Rule(r.Column)
		return rule.Kind != r.Rule.Kind || rule.Offset != r.Rule.Offset
	})
}
