// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
)

// Apart returns the sections of a list that share no bytes of the file, in the order of the
// list. Of two that overlap it is the one that begins first. Section headers are small, and
// thousands of them can name the same bytes: a caller that reads all sections of a kind reads no
// more than the file has. The error names the sections that were left out; nil: none was.
func Apart(list []*Section) (apart []*Section, left error) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a].Offset, list[b].Offset) })
	keep := make([]bool, len(list))
	var last, first *Section // the last one kept, and the first one left out
	count := 0
	for _, i := range order {
		s := list[i]
		switch {
		case s.Type == elf.SHT_NOBITS || s.Size == 0: // has no bytes
			keep[i] = true
		case last == nil || s.Offset-last.Offset >= last.Size:
			keep[i], last = true, s
		default:
			if count++; first == nil || s.Index < first.Index {
				first = s
			}
		}
	}
	for i, s := range list {
		if keep[i] {
			apart = append(apart, s)
		}
	}
	if count > 0 {
		left = fmt.Errorf("%s: section %s (%d): offset %#x: expected bytes that no other section has: it and %d more are not read",
			first.object.name, first.Name, first.Index, first.Offset, count-1)
	}
	return apart, left
}

// SectionsNamed returns the sections of some names that have bytes, as far as Apart
// does.
func (o *Object) SectionsNamed(names ...string) ([]*Section, error) {
	var list []*Section
	for _, s := range o.sections {
		if s.Type != elf.SHT_NOBITS && s.Size > 0 && slices.Contains(names, s.Name) {
			list = append(list, s)
		}
	}
	return Apart(list)
}
