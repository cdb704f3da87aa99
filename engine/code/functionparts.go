// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/sdk"
)

// This file reads parts of functions, which lie apart from them and are entered by their
// jumps.

const (
	// maxParts bounds the parts of a function that are read with it, and the functions
	// that a part may be of.
	maxParts = 32
	// maxPartNumber is the last number that names of parts are looked for with.
	maxPartNumber = 9
)

// readPart asks the plugin for rows of a part at a lookup, which is read with the function
// that it is a part of. It is nil where none leads to it.
func (o *Object) readPart(ctx context.Context, lookup uint64, isExact bool, part Bounds) (*sdk.FrameRules, error) {
	name, ok := sdk.PartOf(part.Name)
	if !ok || o.symbols == nil {
		return nil, nil //nolint:nilnil // it is none
	}
	functions, parts := o.functionsAndParts(name, part)
	asked := sdk.CodeRange{Bounded: true, Name: name, Exact: isExact}
	size := 0
	for _, p := range parts {
		if code := o.codeOf(p.Start, p.End); code != nil && size+len(code) <= maxFunctionCode {
			size += len(code)
			asked.Parts = append(asked.Parts, sdk.CodePart{Start: p.Start - o.base(p.Start), Code: code})
		}
	}
	for _, f := range functions {
		if asked.Code = o.codeOf(f.Start, f.End); asked.Code == nil {
			continue
		}
		base := o.base(part.Start)
		asked.PC, asked.Start = lookup-base, f.Start-o.base(f.Start)
		rules, err := o.askRules(ctx, asked)
		if err != nil {
			return nil, err
		}
		moveRules(rules, base)
		if rowIn(rules.Rows, lookup) != nil {
			return rules, nil
		}
	}
	return nil, nil //nolint:nilnil // none leads there
}

// functionsAndParts are the functions of a name, of which source files may have several, and
// the parts whose names begin with it, the one that is asked for first.
func (o *Object) functionsAndParts(name string, asked Bounds) (functions, parts []symbol.Symbol) {
	names := map[string]bool{name: true, asked.Name: true}
	for _, mark := range sdk.PartMarks() {
		names[name+mark] = true
		for n := range maxPartNumber + 1 {
			names[fmt.Sprintf("%s%s.%d", name, mark, n)] = true
		}
	}
	list, ok := o.symbols.Named(names)
	if !ok {
		list = o.symbols.Functions()
	}
	parts = []symbol.Symbol{{Name: asked.Name, Start: asked.Start, End: asked.End}}
	for _, s := range list {
		switch {
		case !names[s.Name] || s.Start == asked.Start || o.base(s.Start) != o.base(asked.Start):
		case s.Name == name && len(functions) < maxParts:
			functions = append(functions, s)
		case s.Name != name && len(parts) < maxParts:
			parts = append(parts, s)
		}
	}
	return functions, parts
}

// codeOf is the code between two addresses of the object; nil where not all of it is there.
func (o *Object) codeOf(start, end uint64) []byte {
	if end <= start || end-start > maxFunctionCode {
		return nil
	}
	code := make([]byte, end-start)
	if n, err := o.readCode(start, code); err != nil || n < len(code) {
		return nil
	}
	return code
}

const (
	// maxUnbounded is how far behind its start code may be of a function that nothing bounds.
	maxUnbounded = 1 << 14
	// maxPartCode is how far behind its start code may be of a part that nothing bounds.
	maxPartCode = 1 << 12
)

// RowFrom is the row at a lookup of a function that begins at another address although
// nothing says so, as the plugin reads it from there; nil where that does not lead to the
// lookup. It may be in a part of the function that a jump leads to. The answer is
// remembered.
func (o *Object) RowFrom(ctx context.Context, start, lookup uint64, isExact bool) (*cfi.Row, error) {
	key := [2]uint64{start, lookup}
	o.mu.Lock()
	row, ok := o.fromRows[key]
	o.mu.Unlock()
	if ok {
		return row, nil
	}
	for _, asked := range o.rangesFrom(ctx, start, lookup) {
		asked.Bounded, asked.Exact = true, isExact
		o.mu.Lock()
		rules, err := o.askRules(ctx, asked)
		o.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if row = rowIn(rules.Rows, asked.PC); row != nil {
			break
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fromRows == nil {
		o.fromRows = map[[2]uint64]*cfi.Row{}
	}
	if len(o.fromRows) < maxKept {
		o.fromRows[key] = row
		o.bytes.Add(rowBytes)
		o.library.bytes.Add(rowBytes)
	}
	return row, nil
}

// rangesFrom is code that may be of one function that begins at an address: as far as a
// lookup, or with the code that one of its jumps leads to, near before the lookup.
func (o *Object) rangesFrom(ctx context.Context, start, lookup uint64) (ranges []sdk.CodeRange) {
	base := o.base(lookup)
	if o.base(start) != base {
		return nil
	}
	end := o.codeWindow(lookup).End
	if start <= lookup && lookup-start < maxUnbounded {
		if code := o.codeOf(start, end); code != nil {
			ranges = append(ranges, sdk.CodeRange{PC: lookup - base, Start: start - base, Code: code})
		}
		return ranges
	}
	exits, err := o.Exits(ctx, start)
	if err != nil || exits == nil {
		return nil
	}
	function := o.codeOf(start, exits.End)
	for _, jump := range exits.Jumps {
		if jump > lookup || lookup-jump >= maxPartCode || function == nil || jump < exits.End && end > start && jump >= start {
			continue
		}
		if code := o.codeOf(jump, end); code != nil {
			ranges = append(ranges, sdk.CodeRange{PC: lookup - base, Start: start - base, Code: function,
				Parts: []sdk.CodePart{{Start: jump - base, Code: code}}})
		}
	}
	return ranges
}
