// SPDX-License-Identifier: Apache-2.0

package dwarf

import "github.com/unwindd/unwindd/internal/dw"

// This file finds the functions that were left by tail calls (DWARF 5, 3.4).

// Function is the function with code at an address of the object; the zero Entry where none
// is known.
func (r *Reader) Function(address uint64) (e Entry, err error) {
	err = r.protect(func() error {
		b, f, err := r.describing(address)
		if err == nil && f != nil {
			e, err = b.entryAt(b.offset + uint64(f.offset))
		}
		return err
	})
	return e, err
}

// FunctionFrom is the function whose entry point is an address of the object; the zero
// Entry where there is none.
func (r *Reader) FunctionFrom(address uint64) (Entry, error) {
	e, err := r.Function(address)
	if err != nil || e.IsZero() {
		return Entry{}, err
	}
	if pc, ok, err := e.EntryPC(); err != nil || !ok || pc != address {
		return Entry{}, err
	}
	return e, nil
}

// PC returns the address of a tail call: after is the address behind it, as gcc writes it
// (DW_AT_call_return_pc, DW_AT_low_pc in GNU's extension), and pc the address of the
// instruction, as clang writes it (DW_AT_call_pc). An unknown one is 0; ok is false where
// both are unknown.
func (s CallSite) PC() (pc, after uint64, ok bool, err error) {
	after, _, err = s.Address(s.callAttributes().returnPC)
	if err == nil && s.Tag() != dw.TagGNUCallSite {
		pc, _, err = s.Address(dw.AttrCallPC)
	}
	return pc, after, pc != 0 || after != 0, err
}
