// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
)

// HasKept says whether a register has what the caller had in it where the code at an address of
// the object is about to execute: it was not changed yet, or it was given back. The plugin
// reads the code for that, and what it said is remembered; false where it is not known.
//
// Call frame information does not tell: compilers leave a register where it was saved until
// the function ends, also behind the instruction that pops it.
func (m *Module) HasKept(ctx context.Context, address, register uint64) bool {
	o := m.Code
	o.resolver() // whose symbols bound functions
	row, isAdded := o.rowOfCode(ctx, address)
	if isAdded {
		o.grow(rowBytes)
	}
	return row != nil && row.Defaults.Rule(row.Rules, register).Kind == cfi.SameValue
}

// rowOfCode is the row that the plugin finds by reading the code of a function to its end; nil
// where there is none.
func (o *Object) rowOfCode(ctx context.Context, address uint64) (row *Row, isAdded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if row, ok := o.codeRows[address]; ok {
		return row, false
	}
	if o.open(ctx) != nil {
		return nil, false
	}
	at := o.lookup(address, true)
	for _, s := range o.sources {
		found, err := s.Row(ctx, at) // those before say where the function begins and ends
		if _, isReader := s.(codeReader); !isReader {
			continue
		}
		if err == nil && found != nil {
			row = at.complete(found)
		}
		break
	}
	if ctx.Err() != nil || len(o.codeRows) >= maxKept {
		return row, false
	}
	if o.codeRows == nil {
		o.codeRows = map[uint64]*Row{}
	}
	o.codeRows[address] = row
	return row, true
}
