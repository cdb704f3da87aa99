// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/unwindd/unwindd/locexpr"

// Table returns the dialect for the evaluator: the one of this name that locexpr has built
// in, or standard DWARF with the dialect's operations added. The error is from locexpr's
// Extend: an operation has an unknown name, or the opcode of another one.
func (d *Dialect) Table() (*locexpr.Dialect, error) {
	if builtIn, ok := locexpr.DialectByName(d.Name); ok {
		return builtIn, nil // checkBuiltIn compares the operations that are listed
	}
	return locexpr.DWARF5.Extend(d.Name, d.encodings())
}

func (d *Dialect) encodings() []locexpr.Encoding {
	encodings := make([]locexpr.Encoding, len(d.Operations))
	for i, op := range d.Operations {
		encodings[i] = locexpr.Encoding{Opcode: op.Opcode, User: op.User, Name: op.Name}
	}
	return encodings
}
