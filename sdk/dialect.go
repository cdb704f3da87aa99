// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/locexpr"

// Table is the dialect as the evaluator uses it: standard DWARF with the
// dialect's operations in their places. The error is that of locexpr's Extend: an
// operation has no such name there, or the place of another one.
func (d *Dialect) Table() (*locexpr.Dialect, error) {
	return locexpr.DWARF5.Extend(d.Name, d.encodings())
}

func (d *Dialect) encodings() []locexpr.Encoding {
	encodings := make([]locexpr.Encoding, len(d.Operations))
	for i, op := range d.Operations {
		encodings[i] = locexpr.Encoding{Opcode: op.Opcode, User: op.User, Name: op.Name}
	}
	return encodings
}
