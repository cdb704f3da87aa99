package engine

import (
	"debug/elf"
	"fmt"
	"iter"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
)

// A CallFrameEntry is an entry of a section of call frame information.
type CallFrameEntry struct {
	Section string // ".eh_frame"
	Size    uint64 // of the section, bytes
	cfi.Entry
}

// CallFrameEntries lists the call frame information of a code object as it is
// written, section by section in the file's order. An error is about one entry
// or one section, and what follows it goes on.
func CallFrameEntries(o *object.Object) iter.Seq2[CallFrameEntry, error] {
	return func(yield func(CallFrameEntry, error) bool) {
		tables := frameTables(o)
		if s := o.Section(".eh_frame"); s != nil && s.Type != elf.SHT_NOBITS {
			if _, err := s.Data(); err != nil {
				tables = append(tables, frameTable{section: s.Name, err: err})
			}
		}
		slices.SortStableFunc(tables, func(a, b frameTable) int { return fileOrder(o, a.section) - fileOrder(o, b.section) })
		for _, t := range tables {
			e := CallFrameEntry{Section: t.section}
			if t.err != nil {
				if !yield(e, t.err) {
					return
				}
				continue
			}
			e.Size = uint64(t.size)
			for entry, err := range t.Entries() {
				e.Entry = entry
				if err != nil {
					err = fmt.Errorf("%s: %w", o.Name(), err)
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// fileOrder is where a section stands among the sections of its file. A section
// that only a program header names comes first.
func fileOrder(o *object.Object, name string) int {
	if s := o.Section(name); s != nil {
		return s.Index
	}
	return 0
}
