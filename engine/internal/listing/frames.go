// SPDX-License-Identifier: Apache-2.0

// Package listing lists the contents of a file as they are written: call frame information,
// .sframe, unwind codes and expressions of a code object, and the debug information of a
// module in an intermediate representation.
package listing

import (
	"fmt"
	"iter"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
)

// CallFrameEntry is an entry of a section of call frame information.
type CallFrameEntry struct {
	Section string // ".eh_frame"
	Size    uint64 // of the section, bytes
	// Code is the section of a relocatable object in which an FDE has its addresses; ""
	// in other objects.
	Code string
	cfi.Entry
}

// SFrameEntries lists the function descriptor entries of an object's .sframe, in
// the section's order. An error is about one entry, or the section.
func SFrameEntries(o *object.Object) iter.Seq2[*cfi.SFrameFDE, error] {
	return func(yield func(*cfi.SFrameFDE, error) bool) {
		t, err := code.SFrameTable(o)
		if err != nil {
			yield(nil, err)
			return
		}
		if t == nil {
			return
		}
		for f, err := range t.FDEs() {
			if err != nil {
				err = fmt.Errorf("%s: %w", o.Name(), err)
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// CallFrameEntries lists the call frame information of a code object as it is written,
// section by section in the file's order. An error is about one entry or one section, and
// the entries after it follow.
func CallFrameEntries(o *object.Object) iter.Seq2[CallFrameEntry, error] {
	return func(yield func(CallFrameEntry, error) bool) {
		tables := code.FrameTables(o)
		slices.SortStableFunc(tables, func(a, b code.FrameTable) int { return a.Index - b.Index })
		sizes := addressSizes{object: o}
		for _, t := range tables {
			e := CallFrameEntry{Section: t.Section}
			if t.Err != nil {
				if !yield(e, t.Err) {
					return
				}
				continue
			}
			e.Size = uint64(t.Size)
			for entry, err := range t.Entries() {
				e.Entry, e.Code = entry, ""
				if f := entry.FDE; f != nil && f.Code != 0 && uint64(f.Code) < uint64(len(o.Sections())) {
					e.Code = o.Sections()[f.Code].Name
				}
				if err != nil {
					err = fmt.Errorf("%s: %w", o.Name(), err)
				}
				if !yield(e, err) {
					return
				}
				if err := sizes.check(e); err != nil && !yield(e, err) {
					return
				}
			}
		}
	}
}

// addressSizes compares the address sizes of CIEs with the sizes in compilation units.
type addressSizes struct {
	object *object.Object
	reader *dwarf.Reader
	isRead bool
	last   *cfi.CIE // the last one that was found wrong
}

// check returns an error for an FDE whose CIE has another address size than the
// compilation unit of its code (A.6.4.1). Before version 4 a CIE has no address size.
func (s *addressSizes) check(e CallFrameEntry) error {
	if e.FDE == nil || e.FDE.CIE.Version < 4 || e.FDE.CIE == s.last {
		return nil
	}
	if !s.isRead {
		s.isRead = true
		s.reader, _ = dwarf.New(s.object) // without debug information there is nothing to compare
	}
	if s.reader == nil {
		return nil
	}
	function, err := s.reader.Function(e.FDE.Start)
	if err != nil || function.IsZero() || function.Unit().AddressSize() == e.FDE.CIE.AddressSize {
		return nil //nolint:nilerr // not about call frame information
	}
	s.last = e.FDE.CIE
	return fmt.Errorf("%s: %s: offset %#x: the CIE says that addresses have %d bytes, the unit at %#x, of the code at %#x, %d",
		s.object.Name(), e.Section, e.FDE.CIE.Offset, e.FDE.CIE.AddressSize, function.Unit().Offset(), e.FDE.Start, function.Unit().AddressSize())
}
