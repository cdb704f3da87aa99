// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"iter"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/object"
)

// UnwindEntry is an entry of .pdata of a PE file, with its unwind information.
type UnwindEntry struct {
	pe.Function
	Section string         // of the unwind information: ".xdata"
	Offset  uint64         // of the unwind information in the section
	Info    *pe.UnwindInfo // nil of arm64
	ARM64   *pe.ARM64Info  // nil of x86-64
	// Rows calls yield with every row of the function, in order of address, until it
	// returns false. The row is reused between calls.
	Rows func(yield func(*pe.Row) bool) error
}

// UnwindEntries lists the entries of .pdata of a PE file for x86-64 or arm64, in order of address;
// nothing for another object. An error is about one entry, and what follows it goes on.
func UnwindEntries(o *object.Object) iter.Seq2[*UnwindEntry, error] {
	return func(yield func(*UnwindEntry, error) bool) {
		f := o.PE()
		if f == nil || !f.HasUnwindCodes() {
			return
		}
		err := f.Functions(func(fn pe.Function) bool {
			e, err := unwindEntry(f, fn)
			return yield(e, err)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// unwindEntry reads the unwind information of a function.
func unwindEntry(f *pe.File, fn pe.Function) (*UnwindEntry, error) {
	e := &UnwindEntry{Function: fn, Rows: func(yield func(*pe.Row) bool) error { return f.Rows(fn, yield) }}
	var address uint64
	var err error
	if f.Machine() == pe.MachineARM64 {
		if e.ARM64, err = f.ARM64Info(fn); err == nil {
			address = e.ARM64.Address
		}
	} else if e.Info, err = f.UnwindInfo(fn); err == nil {
		address = e.Info.Address
	}
	if err != nil {
		return nil, err
	}
	if s := f.SectionAt(address); s != nil {
		e.Section, e.Offset = s.Name, address-s.Address()
	}
	return e, nil
}

// IsSignalFrame reports whether the caller of the function was interrupted.
func (e *UnwindEntry) IsSignalFrame() bool {
	if e.ARM64 != nil {
		return e.ARM64.IsSignalFrame()
	}
	return slices.ContainsFunc(e.Info.Codes, func(c pe.UnwindCode) bool { return c.Operation == pe.PushMachFrame })
}
