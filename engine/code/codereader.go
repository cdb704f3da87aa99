// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file asks the plugin for rows that it finds by reading code.

// maxFunctionCode bounds the code of a function that a plugin is asked to read.
const maxFunctionCode = 1 << 20

// CodeWindow is how much code is sent before and after a PC in a function
// that nothing bounds: a page.
const CodeWindow = 4096

// codeReader finds rows by reading the code.
type codeReader struct{ object *Object }

func newCodeReader(o *Object) RowSource { return codeReader{o} }

func (s codeReader) Row(ctx context.Context, at *Lookup) (*Row, error) {
	o := s.object
	if row := o.rowRead(at.Address); row != nil && (at.IsExact || !o.isBehindFunction(at.PC, at.Address)) {
		return &Row{Rules: row, By: ByRules, Defaults: o.machine.Defaults, IsComplete: true}, nil
	}
	rules, err := o.readFunction(ctx, at.PC, at.Address, at.IsExact, at.Bounds)
	if err != nil {
		return nil, err
	}
	address := at.Address
	if rules.Trampoline {
		address = at.PC
	}
	if row := rowIn(rules.Rows, address); row != nil {
		found := &Row{Rules: row, By: ByRules, IsComplete: rules.Complete}
		if rules.Complete || o.pe() != nil && !o.pe().IsGo() { // the plugin follows what its own conventions preserve
			found.Defaults = o.machine.Defaults
		}
		return found, nil
	}
	none := &NoRow{IsUncalled: rules.Uncalled}
	if rules.Reason != "" {
		none.Reasons = []string{"code: " + rules.Reason}
	}
	return nil, none
}

// readRow reads the code of a function whose call frame information is not to be
// believed. Of one that a signal handler returns to it says what holds after a
// call, which is not how it was entered.
func (o *Object) readRow(ctx context.Context, f *sdk.Function, pc, lookup uint64, isExact bool) (*Row, error) {
	rules, err := o.readFunction(ctx, pc, lookup, isExact, Bounds{f.Start, f.End, true, f.Name})
	if err != nil {
		return nil, err
	}
	if row := rowIn(rules.Rows, lookup); row != nil {
		return &Row{Rules: row, By: ByRules, Defaults: o.defaults}, nil
	}
	return nil, noRow("code: " + rules.Reason)
}

// A readFunction is a function that was read as a whole, or what rows cover of one without
// known bounds: it is not asked for again.
type readFunction struct {
	start, end uint64
	rules      *sdk.FrameRules
}

// A readList is what was read, sorted by address; nothing in it overlaps.
type readList []readFunction

// at is what was read of the code at an address, or nil.
func (l readList) at(address uint64) *sdk.FrameRules {
	i := sort.Search(len(l), func(i int) bool { return l[i].start > address })
	if i > 0 && address < l[i-1].end {
		return l[i-1].rules
	}
	return nil
}

// rowRead is the row at an address in a function with known bounds that was read before, or nil.
func (o *Object) rowRead(lookup uint64) *cfi.Row {
	if rules := o.read.at(lookup); rules != nil {
		return rowIn(rules.Rows, lookup)
	}
	return nil
}

// rulesRead is what was read of a function with these bounds, or nil. One that
// another source bounds otherwise may have other gaps.
func (o *Object) rulesRead(start, end uint64) *sdk.FrameRules {
	i := sort.Search(len(o.read), func(i int) bool { return o.read[i].start >= start })
	if i < len(o.read) && o.read[i].start == start && o.read[i].end == end {
		return o.read[i].rules
	}
	return nil
}

// keepRead keeps in a list what was read of a function. One that was read for another address
// of it has them already.
func (o *Object) keepRead(list *readList, f readFunction) {
	l := *list
	i := sort.Search(len(l), func(i int) bool { return l[i].start >= f.start })
	if (i == len(l) || l[i].start >= f.end) && (i == 0 || l[i-1].end <= f.start) {
		*list = slices.Insert(l, i, f)
		o.readSize.Add(int64(f.memorySize()))
	}
}

// keepCovered keeps the rows of a function without known bounds, as in code without symbols,
// for all that they cover and that is not kept already. They answer for code without known
// bounds alone: functions with bounds, and parts of them, are read by these.
func (o *Object) keepCovered(rules *sdk.FrameRules) {
	for rows := rules.Rows; len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].Start == rows[n-1].End {
			n++
		}
		start, end := rows[0].Start, rows[n-1].End
		i := sort.Search(len(o.covered), func(i int) bool { return o.covered[i].start > start })
		if i > 0 {
			start = max(start, o.covered[i-1].end)
		}
		if i < len(o.covered) {
			end = min(end, o.covered[i].start)
		}
		if start < end {
			o.keepRead(&o.covered, readFunction{start, end, &sdk.FrameRules{Rows: rows[:n:n], Complete: true}})
		}
		rows = rows[n:]
	}
}

// memorySize is about how many bytes a function that was read takes.
func (f *readFunction) memorySize() int {
	size := int(unsafe.Sizeof(*f)+unsafe.Sizeof(*f.rules)) + (len(f.rules.Gaps)+len(f.rules.Contradictions))*int(unsafe.Sizeof(sdk.RowGap{}))
	for i := range f.rules.Rows {
		r := &f.rules.Rows[i]
		size += int(unsafe.Sizeof(*r)) + (len(r.Rules)+len(r.CallSite))*int(unsafe.Sizeof(cfi.RegisterRule{}))
	}
	return size
}

// boundsToRead are the bounds of the function at a lookup, as far as a symbol has
// them. rules are the answer already where the return address is the first byte of
// a trampoline: no call of the function before pushed it.
func (o *Object) boundsToRead(ctx context.Context, pc, lookup uint64, isExact bool) (b Bounds, rules *sdk.FrameRules, err error) {
	if !isExact && o.isBehindFunction(pc, lookup) {
		first := Bounds{}
		if s, ok := o.symbolAt(pc); ok && s.Start == pc && s.End > s.Start {
			first = Bounds{s.Start, s.End, true, s.Name}
		}
		rules, err := o.readFunction(ctx, pc, pc, true, first)
		if err != nil || rules.Trampoline {
			return b, rules, err
		}
	}
	if s, ok := o.symbolAt(lookup); ok && s.End > s.Start {
		b = Bounds{s.Start, s.End, true, s.Name}
	}
	return b, nil, nil
}

// isBehindFunction says whether a symbol begins at an address, or that of the code before ends
// there: musl's trampolines have symbols without a size.
func (o *Object) isBehindFunction(pc, lookup uint64) bool {
	if s, ok := o.symbolAt(pc); ok && s.Start == pc && s.End > s.Start {
		return true
	}
	s, ok := o.symbolAt(lookup)
	return ok && s.End == pc
}

// readFunction asks the plugin for rows of the function at pc.
func (o *Object) readFunction(ctx context.Context, pc, lookup uint64, isExact bool, bounds Bounds) (*sdk.FrameRules, error) {
	if !bounds.IsKnown {
		b, rules, err := o.boundsToRead(ctx, pc, lookup, isExact)
		if rules != nil || err != nil {
			return rules, err
		}
		bounds = b
	}
	if rules, err := o.readPart(ctx, lookup, isExact, bounds); rules != nil || err != nil {
		return rules, err
	}
	window := bounds
	if !bounds.IsKnown || bounds.End-bounds.Start > maxFunctionCode || lookup < bounds.Start {
		window = o.codeWindow(pc)
		bounds.IsKnown = false
	}
	if bounds.IsKnown {
		if rules := o.rulesRead(window.Start, window.End); rules != nil {
			return reasonedRules(rules, lookup), nil
		}
	} else if rules := o.covered.at(lookup); rules != nil {
		return rules, nil
	}
	code := make([]byte, window.End-window.Start)
	n, err := o.readCode(window.Start, code)
	switch {
	case n == 0 && o.File == nil && o.made == nil && errors.Is(err, target.ErrNoMemory):
		return &sdk.FrameRules{Reason: "it is neither in a file that is here nor in the target"}, nil
	case n == 0:
		return &sdk.FrameRules{Reason: err.Error()}, nil
	}
	base := o.base(window.Start)
	asked := sdk.CodeRange{
		PC: lookup - base, Start: window.Start - base, Code: code[:n],
		Bounded: bounds.IsKnown && n == len(code), Name: window.Name, Exact: isExact,
	}
	rules, err := o.askRules(ctx, asked)
	if err != nil {
		return nil, err
	}
	moveRules(rules, base)
	switch {
	case !rules.Complete || rules.Trampoline:
	case asked.Bounded:
		o.keepRead(&o.read, readFunction{window.Start, window.End, rules})
	default:
		o.keepCovered(rules)
	}
	return rules, nil
}

// moveRules adds to the addresses of rules where their section begins.
func moveRules(rules *sdk.FrameRules, base uint64) {
	for i := range rules.Rows {
		row := &rules.Rows[i]
		row.Start, row.End = row.Start+base, row.End+base
	}
	for _, ranges := range [...][]sdk.RowGap{rules.Gaps, rules.Contradictions} {
		for i := range ranges {
			ranges[i].Start, ranges[i].End = ranges[i].Start+base, ranges[i].End+base
		}
	}
}

// reasonedRules is what was read of a whole function, with the reason why an
// address of it has no row, should it have none.
func reasonedRules(rules *sdk.FrameRules, lookup uint64) *sdk.FrameRules {
	r := *rules
	r.Reason = cmp.Or(r.GapReason(lookup), "reading the function gave no row here")
	return &r
}

// askRules asks for the rows of one function of the object. It is opened again
// where the plugin does not know it any longer.
func (o *Object) askRules(ctx context.Context, code sdk.CodeRange) (*sdk.FrameRules, error) {
	e := objectEngine{o}
	if o.File == nil {
		return AskRules(ctx, o.machine, e, 0, code)
	}
	rules, err := AskRules(ctx, o.machine, e, o.handle(), code)
	if !errors.Is(err, sdk.ErrObjectNotOpen) {
		return rules, err
	}
	if _, err := o.machine.Plugin.OpenObject(ctx, e, o.openRequest()); err != nil {
		return nil, err
	}
	if rules, err = AskRules(ctx, o.machine, e, o.handle(), code); err != nil {
		return nil, fmt.Errorf("%s: %w", o.File.Name(), err)
	}
	return rules, nil
}

// AskRules asks an architecture's plugin for the rows of one function, which come
// by address. object is the handle of its code object; 0: it is in none.
func AskRules(ctx context.Context, m *Machine, e sdk.Engine, object uint64, code sdk.CodeRange) (*sdk.FrameRules, error) {
	answer, err := m.Plugin.FrameRules(ctx, e, &sdk.FrameRulesRequest{Object: object, Functions: []sdk.CodeRange{code}})
	if err != nil {
		return nil, err
	}
	rules := &answer.Functions[0]
	sortRows(rules.Rows)
	return rules, nil
}

// LooseRow asks for the row of code that is in no module.
func LooseRow(ctx context.Context, m *Machine, e sdk.Engine, code sdk.CodeRange) (*Row, error) {
	rules, err := AskRules(ctx, m, e, 0, code)
	if err != nil {
		return nil, err
	}
	if row := rowIn(rules.Rows, code.PC); row != nil {
		return &Row{Rules: row, By: ByRules, Defaults: m.Defaults}, nil
	}
	return nil, &NoRow{Reasons: []string{"the PC is in no module", "code: " + rules.Reason}, IsUncalled: rules.Uncalled}
}

var errNotInSegments = errors.New("the code is not in the module's segments")

// readCode reads code at an address of the object: what a runtime made, the
// target's memory of an object that is the target's alone, and else the file.
// Targets of accelerators have seldom any memory but that of their threads.
func (o *Object) readCode(address uint64, buf []byte) (n int, err error) {
	switch {
	case o.made != nil:
		return o.made.Read(address, buf)
	case o.module != nil && o.readMemory != nil:
		at, ok := o.module.Start(address)
		if !ok {
			err = errNotInSegments
			break
		}
		n, err = o.readMemory(at, buf)
	}
	if n == 0 && o.File != nil {
		n = o.readFile(address, buf)
	}
	if n < len(buf) && err == nil {
		err = fmt.Errorf("%#x: %w", address+uint64(n), target.ErrNoMemory)
	}
	return n, err
}

// readFile reads code from the object's file. A relocatable one that has one section
// of code is not laid out, and has no segments either.
func (o *Object) readFile(address uint64, code []byte) int {
	file := o.laid
	if !o.isLaid() {
		if n, _ := o.File.ReadAddress(code, address); n > 0 || len(o.File.Segments()) > 0 {
			return n
		}
		file = o.File
	}
	for _, s := range file.Sections() {
		if s.Flags&elf.SHF_EXECINSTR == 0 || address-s.Address >= s.Size {
			continue
		}
		if data, err := s.Data(); err == nil && address-s.Address < uint64(len(data)) {
			return copy(code, data[address-s.Address:])
		}
	}
	return 0
}

// codeWindow is the code around pc, within its section or segment.
func (o *Object) codeWindow(pc uint64) Bounds {
	w := Bounds{Start: 0, End: ^uint64(0)}
	for s := range o.codeSegments() {
		if pc-s.Address < s.Size {
			w.Start, w.End = s.Address, s.Address+s.Size
		}
	}
	if o.laid != nil {
		for _, s := range o.laid.Sections() {
			if s.Flags&elf.SHF_EXECINSTR != 0 && pc-s.Address < s.Size && s.Address >= w.Start && s.Address+s.Size <= w.End {
				w = Bounds{Start: s.Address, End: s.Address + s.Size, Name: s.Name}
			}
		}
	}
	if pc-w.Start > CodeWindow {
		w.Start = pc - CodeWindow
	}
	if w.End-pc > CodeWindow {
		w.End = pc + CodeWindow
	}
	return w
}

// codeSegments are the executable segments: those of the module of an object that
// is one target's alone, and else those of the file.
func (o *Object) codeSegments() func(yield func(target.Segment) bool) {
	return func(yield func(target.Segment) bool) {
		if o.module != nil {
			for _, s := range o.module.Placed {
				if s.Executable && !yield(s) {
					return
				}
			}
			return
		}
		for _, s := range o.File.Segments() {
			if s.Executable() && !yield(target.Segment{Address: s.Address, Size: s.MemSize, Executable: true}) {
				return
			}
		}
	}
}
