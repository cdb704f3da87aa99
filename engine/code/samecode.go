// SPDX-License-Identifier: Apache-2.0

package code

import "github.com/unwindd/unwindd/engine/symbol/dwarf"

// This file finds out which of several functions code is of that a linker made one code of:
// the one that the caller's call site names (DW_AT_call_origin; DWARF 5, 3.4).

// MayBeEqual reports whether the code at an address, which has been named, may be that of several
// functions. It costs a look at the symbols.
func (o *Object) MayBeEqual(address uint64) bool {
	r := o.resolver()
	return r != nil && r.MayBeEqual(address)
}

// Callee is the function that the call with a return address calls, where that is in one of
// some functions with the same code; the zero Entry where that is not said, or depends on
// which of them it is in. It is called inside object.Guard.
func (o *Object) Callee(returnPC uint64, functions []dwarf.Entry) (callee dwarf.Entry, err error) {
	for i, function := range functions {
		call, err := o.Call(returnPC, function)
		if err != nil || call.Callee.IsZero() {
			return dwarf.Entry{}, err
		}
		if i == 0 {
			callee = call.Callee
		} else if same, err := dwarf.SameFunction(callee, call.Callee); err != nil || !same {
			return dwarf.Entry{}, err
		}
	}
	return callee, nil
}

// Called is which of the functions with the code at an address a call site's callee is: own,
// which is described there, or another one; the zero Entry where it is none of them. It is
// called inside object.Guard.
func (o *Object) Called(address uint64, own, callee dwarf.Entry) (function dwarf.Entry, err error) {
	same, err := dwarf.SameFunction(callee, own)
	if same || err != nil {
		return own, err
	}
	d := o.DWARF()
	equals, err := d.Equals(address)
	if err != nil {
		return dwarf.Entry{}, err
	}
	for _, e := range equals {
		if same, err := dwarf.SameFunction(callee, e); err == nil && same {
			return e, nil
		}
	}
	function, _, err = d.EqualTo(address, callee)
	return function, err
}
