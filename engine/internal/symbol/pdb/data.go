// SPDX-License-Identifier: Apache-2.0

package pdb

import "github.com/unwindd/unwindd/engine/internal/symbol/codeview"

// Data calls yield with the variables that have symbols, in any order: by their own names those
// that have a type, by decorated ones all that other object files can use. The size is 0 where it
// is unknown.
func (f *File) Data(yield func(name string, address, size uint64)) error {
	f.guard(func() {
		s := f.container.Stream(int(f.dbi.recordStream))
		if f.dbi.recordStream == noStream || s == nil {
			return
		}
		for at := uint32(0); ; {
			r, ok := recordAt(s, at, s.Size())
			if !ok {
				if at < s.Size() {
					f.note(s.Errorf(at, "no record before the end of the symbols at %#x: the variables from here on are not read", s.Size()))
				}
				return
			}
			at = r.next
			f.variable(r, yield)
		}
	})
	return nil
}

// variable calls yield with the variable of a record, if it has one.
func (f *File) variable(r record, yield func(name string, address, size uint64)) {
	first := r.U32() // the type of a variable, the flags of a public symbol
	offset := r.U32()
	rva, ok := f.dbi.rva(r.U16(), offset)
	if !ok || r.IsCut {
		return
	}
	size := uint64(0)
	switch r.kind {
	case kindGlobalData, kindLocalData:
		if t := f.types(); t.types != nil {
			size, _ = t.types.Size(codeview.TypeIndex(first))
		}
	case kindPublic:
		if first&(publicIsCode|publicIsFunction) != 0 {
			return
		}
	default:
		return
	}
	if address, ok := f.address(rva); ok {
		yield(r.Text(), address, size)
	}
}
