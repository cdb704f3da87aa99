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
	"sync/atomic"
	"unsafe"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// codeReader has the plugin read code of an object: it is the source of rows for functions
// without call frame information. The callers of its methods hold Object.mu, which guards the
// lists; size is atomic, and the answers about exits have a lock of their own.
type codeReader struct {
	object    *Object
	functions readList     // functions with known bounds
	covered   readList     // code without known bounds, as far as rows cover it
	size      atomic.Int64 // bytes that the lists and ahead take
	ahead     readAhead
	exits     exitAnswers
}

func newCodeReader(o *Object) RowSource { return &o.code }

// A codeRequest asks for the rows of the function at an address, by its code.
type codeRequest struct {
	pc      uint64 // see Lookup.PC
	lookup  uint64 // see Lookup.Address
	isExact bool
	bounds  Bounds // of the function; not known: its symbol is looked up
	ahead   Ahead  // nil: nothing is asked for beside
}

// codeRequest returns the request for the rows at the address of a lookup.
func (l *Lookup) codeRequest(b Bounds) codeRequest {
	return codeRequest{pc: l.PC, lookup: l.Address, isExact: l.IsExact, bounds: b, ahead: l.ahead}
}

func (r *codeReader) Row(ctx context.Context, l *Lookup) (*Row, error) {
	o := r.object
	if row := r.functions.row(l.Address); row != nil && (l.IsExact || !o.isBehindFunction(l.PC, l.Address)) {
		return &Row{Rules: row, By: trace.ByRules, Defaults: o.machine.Defaults, IsComplete: true}, nil
	}
	rules, err := r.rules(ctx, l.codeRequest(l.Bounds))
	if err != nil {
		return nil, err
	}
	address := l.Address
	if rules.Trampoline {
		address = l.PC
	}
	if row := rowIn(rules.Rows, address); row != nil {
		found := &Row{Rules: row, By: trace.ByRules, IsComplete: rules.Complete}
		if rules.Complete || o.pe() != nil && !o.pe().IsGo() { // the plugin follows the registers that its own conventions preserve
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

// functionRow returns the row of a function whose call frame information is not to be
// believed. In a function that a signal handler returns to, that is the row after a call, which
// is not how it was entered.
func (r *codeReader) functionRow(ctx context.Context, f *sdk.Function, req codeRequest) (*Row, error) {
	req.bounds = Bounds{f.Start, f.End, true, f.Name}
	rules, err := r.rules(ctx, req)
	if err != nil {
		return nil, err
	}
	if row := rowIn(rules.Rows, req.lookup); row != nil {
		return &Row{Rules: row, By: trace.ByRules, Defaults: r.object.plugin.defaults}, nil
	}
	return nil, noRow("code: " + rules.Reason)
}

// rules asks the plugin for the rows of the function at an address.
func (r *codeReader) rules(ctx context.Context, req codeRequest) (*sdk.FrameRules, error) {
	o := r.object
	if !req.bounds.IsKnown {
		if rules, err := r.trampolineRules(ctx, req); rules != nil || err != nil {
			return rules, err
		}
		req.bounds = symbolBounds(o.symbolAt(req.lookup))
	}
	if rules, err := r.partRules(ctx, req); rules != nil || err != nil {
		return rules, err
	}
	bounds := req.bounds
	if !bounds.IsKnown || bounds.size() > MaxFunctionCode || req.lookup < bounds.Start {
		bounds = o.codeWindow(req.pc)
	}
	if rules := r.known(bounds, req.lookup); rules != nil {
		return rules, nil
	}
	query, err := o.codeRange(bounds, req.lookup, req.isExact)
	switch {
	case len(query.Code) == 0 && o.File == nil && o.memory.jit == nil && errors.Is(err, target.ErrNoMemory):
		return &sdk.FrameRules{Reason: "it is neither in a file that is here nor in the target"}, nil
	case len(query.Code) == 0:
		return &sdk.FrameRules{Reason: err.Error()}, nil
	}
	rules, err := r.read(ctx, req, bounds, query)
	if err != nil {
		return nil, err
	}
	moveRules(rules, o.base(bounds.Start))
	switch {
	case !rules.Complete || rules.Trampoline:
	case query.Bounded:
		r.keep(&r.functions, readFunction{bounds.Start, bounds.End, rules})
	default:
		r.keepCovered(rules)
	}
	return rules, nil
}

// trampolineRules returns the rules of a trampoline whose first byte is a return address, which
// no call of the function before pushed; nil where there is none.
func (r *codeReader) trampolineRules(ctx context.Context, req codeRequest) (*sdk.FrameRules, error) {
	o := r.object
	if req.isExact || !o.isBehindFunction(req.pc, req.lookup) {
		return nil, nil //nolint:nilnil // there is none
	}
	first := codeRequest{pc: req.pc, lookup: req.pc, isExact: true}
	if b := symbolBounds(o.symbolAt(req.pc)); b.Start == req.pc {
		first.bounds = b
	}
	rules, err := r.rules(ctx, first)
	if err != nil || !rules.Trampoline {
		return nil, err
	}
	return rules, nil
}

// isBehindFunction reports whether a symbol begins at an address, or the symbol of the code
// before ends there: musl's trampolines have symbols without a size.
func (o *Object) isBehindFunction(pc, lookup uint64) bool {
	if b := symbolBounds(o.symbolAt(pc)); b.IsKnown && b.Start == pc {
		return true
	}
	s, ok := o.symbolAt(lookup)
	return ok && s.End == pc
}

// known returns the rules of code that was read before; nil: it was not.
func (r *codeReader) known(b Bounds, lookup uint64) *sdk.FrameRules {
	if !b.IsKnown {
		return r.covered.rules(lookup)
	}
	rules := r.functions.exact(b)
	if rules == nil {
		return nil
	}
	reasoned := *rules
	reasoned.Reason = cmp.Or(rules.GapReason(lookup), "reading the function gave no row here")
	return &reasoned
}

// A readFunction is a function that was read as a whole, or code without known bounds that rows
// cover: it is not asked for again.
type readFunction struct {
	start, end uint64
	rules      *sdk.FrameRules
}

// A readList has the code that was read, sorted by address; nothing in it overlaps.
type readList []readFunction

// rules returns the rules of the code at an address, or nil.
func (l readList) rules(address uint64) *sdk.FrameRules {
	i := sort.Search(len(l), func(i int) bool { return l[i].start > address })
	if i > 0 && address < l[i-1].end {
		return l[i-1].rules
	}
	return nil
}

// row returns the row at an address, or nil.
func (l readList) row(address uint64) *cfi.Row {
	if rules := l.rules(address); rules != nil {
		return rowIn(rules.Rows, address)
	}
	return nil
}

// exact returns the rules of a function with these bounds, or nil. One that another source
// bounds otherwise may have other gaps.
func (l readList) exact(b Bounds) *sdk.FrameRules {
	i := sort.Search(len(l), func(i int) bool { return l[i].start >= b.Start })
	if i < len(l) && l[i].start == b.Start && l[i].end == b.End {
		return l[i].rules
	}
	return nil
}

// keep adds a function to a list. One that was read for another address is in it already.
func (r *codeReader) keep(list *readList, f readFunction) {
	l := *list
	i := sort.Search(len(l), func(i int) bool { return l[i].start >= f.start })
	if (i == len(l) || l[i].start >= f.end) && (i == 0 || l[i-1].end <= f.start) {
		*list = slices.Insert(l, i, f)
		r.size.Add(int64(f.memorySize()))
	}
}

// keepCovered keeps the rows of a function without known bounds, as in code without symbols,
// for all that they cover and that is not kept already. They answer for code without known
// bounds alone: functions with bounds, and parts of them, are read by their bounds.
func (r *codeReader) keepCovered(rules *sdk.FrameRules) {
	for rows := rules.Rows; len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].Start == rows[n-1].End {
			n++
		}
		start, end := rows[0].Start, rows[n-1].End
		i := sort.Search(len(r.covered), func(i int) bool { return r.covered[i].start > start })
		if i > 0 {
			start = max(start, r.covered[i-1].end)
		}
		if i < len(r.covered) {
			end = min(end, r.covered[i].start)
		}
		if start < end {
			r.keep(&r.covered, readFunction{start, end, &sdk.FrameRules{Rows: rows[:n:n], Complete: true}})
		}
		rows = rows[n:]
	}
}

// memorySize returns about how many bytes a function that was read takes.
func (f *readFunction) memorySize() int {
	size := int(unsafe.Sizeof(*f)+unsafe.Sizeof(*f.rules)) + (len(f.rules.Gaps)+len(f.rules.Contradictions))*int(unsafe.Sizeof(sdk.RowGap{}))
	for i := range f.rules.Rows {
		r := &f.rules.Rows[i]
		size += int(unsafe.Sizeof(*r)) + (len(r.Rules)+len(r.CallSite))*int(unsafe.Sizeof(cfi.RegisterRule{}))
	}
	return size
}

// moveRules adds a base to the addresses of rules.
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

// askRules asks for the rows of one function of the object.
func (o *Object) askRules(ctx context.Context, code sdk.CodeRange) (*sdk.FrameRules, error) {
	list, err := o.askFunctions(ctx, []sdk.CodeRange{code})
	if err != nil {
		return nil, err
	}
	return &list[0], nil
}

// askFunctions asks for the rows of functions of the object. The object is opened again where
// the plugin does not know it any longer.
func (o *Object) askFunctions(ctx context.Context, functions []sdk.CodeRange) ([]sdk.FrameRules, error) {
	e := objectEngine{o}
	if o.File == nil {
		return o.machine.askFunctions(ctx, e, 0, functions)
	}
	list, err := o.machine.askFunctions(ctx, e, o.handle(), functions)
	if !errors.Is(err, sdk.ErrObjectNotOpen) {
		return list, err
	}
	if _, err := o.machine.Plugin.OpenObject(ctx, e, o.openRequest()); err != nil {
		return nil, err
	}
	if list, err = o.machine.askFunctions(ctx, e, o.handle(), functions); err != nil {
		return nil, fmt.Errorf("%s: %w", o.File.Name(), err)
	}
	return list, nil
}

// askFunctions asks the plugin for the rows of functions, which come by address. object is the
// handle of their code object; 0: they are in none.
func (m *Machine) askFunctions(ctx context.Context, e sdk.Engine, object uint64, functions []sdk.CodeRange) ([]sdk.FrameRules, error) {
	answer, err := m.Plugin.FrameRules(ctx, e, &sdk.FrameRulesRequest{Object: object, Functions: functions})
	if err != nil {
		return nil, err
	}
	for i := range answer.Functions {
		sortRows(answer.Functions[i].Rows)
	}
	return answer.Functions, nil
}

// An UnmappedRow is the row of code that is in no module, or why there is none. Both are nil
// where the code was not asked about.
type UnmappedRow struct {
	Row  *Row
	None *NoRow
}

// Found returns the row, or the error that there is none.
func (r *UnmappedRow) Found() (*Row, error) {
	if r.None != nil {
		return nil, r.None
	}
	return r.Row, nil
}

// UnmappedRows asks for rows of code that is in no module. The first is needed, and its error is
// returned; the others are asked for beside it.
func (m *Machine) UnmappedRows(ctx context.Context, e sdk.Engine, codes []sdk.CodeRange) ([]UnmappedRow, error) {
	ask := func(ctx context.Context, functions []sdk.CodeRange) ([]sdk.FrameRules, error) {
		return m.askFunctions(ctx, e, 0, functions)
	}
	needed, beside, err := m.askBeside(ctx, ask, codes)
	rows := make([]UnmappedRow, len(codes))
	if err == nil {
		rows[0] = m.unmappedRow(needed, codes[0].PC)
	}
	for i, a := range beside {
		if a.rules != nil {
			rows[i+1] = m.unmappedRow(a.rules, codes[i+1].PC)
		}
	}
	return rows, err
}

func (m *Machine) unmappedRow(rules *sdk.FrameRules, pc uint64) UnmappedRow {
	if row := rowIn(rules.Rows, pc); row != nil {
		return UnmappedRow{Row: &Row{Rules: row, By: trace.ByRules, Defaults: m.Defaults}}
	}
	return UnmappedRow{None: &NoRow{Reasons: []string{"the PC is in no module", "code: " + rules.Reason}, IsUncalled: rules.Uncalled}}
}

// MostAhead returns how many functions a call of the plugin may ask about beside the one that is
// needed, of so many bytes each at most.
func (m *Machine) MostAhead(size int) int { return min(m.ahead.most()-1, maxAheadCode/size) }

// codeRange reads code within bounds, for a question about an address, in the addresses of its
// section. The error is why not all of the code is there.
func (o *Object) codeRange(b Bounds, lookup uint64, isExact bool) (sdk.CodeRange, error) {
	code := make([]byte, b.size())
	n, err := o.readCode(b.Start, code)
	base := o.base(b.Start)
	return sdk.CodeRange{
		PC: lookup - base, Start: b.Start - base, Code: code[:n],
		Bounded: b.IsKnown && n == len(code), Name: b.Name, Exact: isExact,
	}, err
}

// wholeCode returns the code between two addresses of the object; nil where not all of it is
// there.
func (o *Object) wholeCode(start, end uint64) []byte {
	b := Bounds{Start: start, End: end}
	if !b.isReadable() {
		return nil
	}
	code := make([]byte, b.size())
	if n, err := o.readCode(start, code); err != nil || n < len(code) {
		return nil
	}
	return code
}

// readCode reads code at an address of the object: JIT code, the target's memory for an object
// that is the target's alone, and else the file. Targets of accelerators seldom have any memory
// but their threads'.
func (o *Object) readCode(address uint64, buf []byte) (n int, err error) {
	n, err = o.memory.readCode(address, buf)
	if o.memory.jit != nil {
		return n, err
	}
	if n == 0 && o.File != nil {
		n = o.readFile(address, buf)
	}
	if n < len(buf) && err == nil {
		err = fmt.Errorf("%#x: %w", address+uint64(n), target.ErrNoMemory)
	}
	return n, err
}

// readFile reads code from the object's file. A relocatable one that has one section of code
// is not laid out, and has no segments either.
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
