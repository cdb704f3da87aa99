// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"fmt"

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
	for _, p := range parts {
		if code := o.codeOf(p.Start, p.End); code != nil {
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
