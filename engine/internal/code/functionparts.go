// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/sdk"
)

// This file reads parts of functions, which lie apart from them and are entered by their
// jumps.

const (
	// maxParts bounds the parts of a function that are read with it, and the functions
	// that a part may belong to.
	maxParts = 32
	// maxPartNumber is the last number that names of parts are looked for with.
	maxPartNumber = 9
)

// partRules asks the plugin for rows of a part at a lookup, which is read with the function
// that it belongs to. It is nil where no function leads to it.
func (r *codeReader) partRules(ctx context.Context, req codeRequest) (*sdk.FrameRules, error) {
	o, part := r.object, req.bounds
	name, ok := sdk.PartOf(part.Name)
	if !ok || o.debug.resolver == nil {
		return nil, nil //nolint:nilnil // it is no part
	}
	functions, parts := o.functionsAndParts(name, part)
	query := sdk.CodeRange{Bounded: true, Name: name, Exact: req.isExact}
	size := 0
	for _, p := range parts {
		if code := o.wholeCode(p.Start, p.End); code != nil && size+len(code) <= MaxFunctionCode {
			size += len(code)
			query.Parts = append(query.Parts, sdk.CodePart{Start: p.Start - o.base(p.Start), Code: code})
		}
	}
	for _, f := range functions {
		if query.Code = o.wholeCode(f.Start, f.End); query.Code == nil {
			continue
		}
		base := o.base(part.Start)
		query.PC, query.Start = req.lookup-base, f.Start-o.base(f.Start)
		rules, err := o.askRules(ctx, query)
		if err != nil {
			return nil, err
		}
		moveRules(rules, base)
		if rowIn(rules.Rows, req.lookup) != nil {
			return rules, nil
		}
	}
	return nil, nil //nolint:nilnil // none leads there
}

// functionsAndParts returns the functions of a name, of which source files may have several,
// and the parts whose names begin with it, the requested part first.
func (o *Object) functionsAndParts(name string, part Bounds) (functions, parts []symbol.Symbol) {
	names := map[string]bool{name: true, part.Name: true}
	for _, mark := range sdk.PartMarks() {
		names[name+mark] = true
		for n := range maxPartNumber + 1 {
			names[fmt.Sprintf("%s%s.%d", name, mark, n)] = true
		}
	}
	list, ok := o.debug.resolver.Named(names)
	if !ok {
		list = o.debug.resolver.Functions()
	}
	parts = []symbol.Symbol{{Name: part.Name, Start: part.Start, End: part.End}}
	for _, s := range list {
		switch {
		case !names[s.Name] || s.Start == part.Start || o.base(s.Start) != o.base(part.Start):
		case s.Name == name && len(functions) < maxParts:
			functions = append(functions, s)
		case s.Name != name && len(parts) < maxParts:
			parts = append(parts, s)
		}
	}
	return functions, parts
}

// RowFrom returns the row at a lookup in a function that begins at another address although
// nothing bounds it, as the plugin reads it from there; nil where that does not lead to the
// lookup. It may be in a part of the function that a jump leads to. The answer is remembered.
func (o *Object) RowFrom(ctx context.Context, start, lookup uint64, isExact bool) (*cfi.Row, error) {
	key := [2]uint64{start, lookup}
	row, ok := o.rows.fromStart.find(key)
	if ok {
		return row, nil
	}
	for _, query := range o.rangesFrom(ctx, start, lookup) {
		query.Bounded, query.Exact = true, isExact
		o.mu.Lock()
		rules, err := o.askRules(ctx, query)
		o.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if row = rowIn(rules.Rows, query.PC); row != nil {
			break
		}
	}
	remember(o, &o.rows.fromStart, key, row, rowBytes)
	return row, nil
}

// rangesFrom returns code that may belong to one function that begins at an address: as far as
// a lookup, or with the code that one of its jumps leads to, near before the lookup.
func (o *Object) rangesFrom(ctx context.Context, start, lookup uint64) (ranges []sdk.CodeRange) {
	base := o.base(lookup)
	if o.base(start) != base {
		return nil
	}
	end := o.codeWindow(lookup).End
	if start <= lookup && lookup-start < maxUnbounded {
		if code := o.wholeCode(start, end); code != nil {
			ranges = append(ranges, sdk.CodeRange{PC: lookup - base, Start: start - base, Code: code})
		}
		return ranges
	}
	exits, err := o.Exits(ctx, start)
	if err != nil || exits == nil {
		return nil
	}
	function := o.wholeCode(start, exits.End)
	for _, jump := range exits.Jumps {
		if jump > lookup || lookup-jump >= maxPartCode || function == nil || jump < exits.End && end > start && jump >= start {
			continue
		}
		if code := o.wholeCode(jump, end); code != nil {
			ranges = append(ranges, sdk.CodeRange{PC: lookup - base, Start: start - base, Code: function,
				Parts: []sdk.CodePart{{Start: jump - base, Code: code}}})
		}
	}
	return ranges
}
