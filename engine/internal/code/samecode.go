// SPDX-License-Identifier: Apache-2.0

package code

import "github.com/unwindd/unwindd/engine/internal/symbol/dwarf"

// This file tells apart functions with the same code, of which a linker kept one copy: the
// caller's call site names the function (DW_AT_call_origin; DWARF 5, 3.4).

// MayBeEqual reports whether the code at an address, which has been named, may be the code of
// several functions. It costs a look at the symbols.
func (o *Object) MayBeEqual(address uint64) bool {
	r := o.resolver()
	return r != nil && r.MayBeEqual(address)
}

// Callee returns the function that the call with a return address calls, in one of some functions
// with the same code; the zero Entry where that is not described, or depends on which of them it
// is. It is called inside object.Guard.
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

// Called returns the function of a call site's callee among the functions with the code at an
// address: own, which is described there, or another one; the zero Entry where it is none of
// them. It is called inside object.Guard.
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
	if !o.MayBeEqual(address) { // most callees left by a tail call; to look for their names takes a look at all units
		return dwarf.Entry{}, nil
	}
	function, _, err = d.EqualTo(address, callee)
	return function, err
}
