// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"iter"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/object"
)

// UnwindEntry is an entry of .pdata of a PE file, with its unwind information.
type UnwindEntry struct {
	pe.Function
	Section string // of the unwind information: ".xdata"
	Offset  uint64 // of the unwind information in the section
	Info    *pe.UnwindInfo
	// Rows calls yield with every row of the function, in order of address, until it
	// returns false. The row is reused between calls.
	Rows func(yield func(*pe.Row) bool) error
}

// UnwindEntries lists the entries of .pdata of a PE file for x86-64, in order of address;
// nothing for another object. An error is about one entry, and what follows it goes on.
func UnwindEntries(o *object.Object) iter.Seq2[*UnwindEntry, error] {
	return func(yield func(*UnwindEntry, error) bool) {
		f := o.PE()
		if f == nil || f.Machine() != pe.MachineX86_64 {
			return
		}
		err := f.Functions(func(fn pe.Function) bool {
			info, err := f.UnwindInfo(fn)
			if err != nil {
				return yield(nil, err)
			}
			e := &UnwindEntry{Function: fn, Info: info, Rows: func(yield func(*pe.Row) bool) error { return f.Rows(fn, yield) }}
			if s := f.SectionAt(info.Address); s != nil {
				e.Section, e.Offset = s.Name, info.Address-s.Address()
			}
			return yield(e, nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}
