// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"iter"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/object"
)

// CompactEntry is an entry of the compact unwind information of a Mach-O file.
type CompactEntry struct {
	macho.UnwindEntry
	Section string
	Mode    macho.UnwindMode
	Name    string // of the mode: "RBP_FRAME"
	HasRow  bool
	HasFDE  bool // the encoding has the place of an FDE in __eh_frame
	// Row fills in the row of the function's body.
	Row func(row *cfi.Row) error
}

// CompactEntries lists the compact unwind information of a Mach-O file for x86-64 or arm64, in order of
// address; nothing for another object. An error is about one entry, or one page of them, and what follows
// it goes on.
func CompactEntries(o *object.Object) iter.Seq2[*CompactEntry, error] {
	return func(yield func(*CompactEntry, error) bool) {
		if !o.IsMachO() {
			return
		}
		u, err := o.MachO().UnwindInfo()
		if err != nil {
			yield(nil, err)
			return
		}
		if u == nil {
			return
		}
		for found, err := range u.Entries() {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			e := &CompactEntry{UnwindEntry: found, Section: u.Section(), Mode: u.Mode(found.Encoding), Name: u.ModeName(found.Encoding)}
			e.HasRow = e.Mode != macho.NoUnwind && e.Mode != macho.DWARFMode && e.Start < e.End
			e.HasFDE = e.Mode == macho.DWARFMode && !u.IsObject()
			e.Row = func(row *cfi.Row) error { return u.Row(&e.UnwindEntry, row) }
			if !yield(e, nil) {
				return
			}
		}
	}
}
