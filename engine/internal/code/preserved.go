// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/cfi"
)

// HasPreserved reports whether a register still has the caller's value where the code at an address
// of the object is about to execute: it was not changed yet, or it was restored. The plugin
// reads the code for that, and its answer is remembered; false where it is not known.
//
// Call frame information does not tell: by it a register is where it was saved until the
// function ends, even behind the instruction that pops it.
func (m *Module) HasPreserved(ctx context.Context, address, register uint64) bool {
	o := m.Code
	o.resolver() // whose symbols bound functions
	row, isAdded := o.rowOfCode(ctx, address)
	if isAdded {
		o.grow(rowBytes)
	}
	return row != nil && row.Defaults.Rule(row.Rules, register).Kind == cfi.SameValue
}

// rowOfCode returns the row that the plugin finds by reading the code of a function to its end;
// nil where there is none.
func (o *Object) rowOfCode(ctx context.Context, address uint64) (row *Row, isAdded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if row, ok := o.rows.ofCode.find(address); ok {
		return row, false
	}
	if o.open(ctx) != nil {
		return nil, false
	}
	l := o.lookup(address, true)
	for _, s := range o.rows.sources {
		found, err := s.Row(ctx, l) // the sources before find where the function begins and ends
		if _, isReader := s.(*codeReader); !isReader {
			continue
		}
		if err == nil && found != nil {
			row = l.complete(found)
		}
		break
	}
	return row, ctx.Err() == nil && o.rows.ofCode.add(address, row, rowBytes)
}
