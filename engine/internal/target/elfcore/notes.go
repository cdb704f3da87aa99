// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
)

// note is a note of the core. data lies in the mapped file.
type note struct {
	owner  string
	typ    uint32
	data   []byte
	offset uint64 // of the note in the core
}

// readNotes reads the notes of all PT_NOTE. Segments that overlap an earlier
// segment are left out: the same bytes read twice would be the same threads twice,
// and 65,535 headers of the same gigabyte would take a day to read.
func readNotes(data []byte, h *coreHeader) (list []note, problems []string) {
	type span struct {
		header     int
		start, end uint64
	}
	var spans []span
	end := uint64(len(data))
	for i := range h.programs {
		p := &h.programs[i]
		if p.typ != elf.PT_NOTE || p.fileSize == 0 {
			continue
		}
		if p.offset >= end {
			problems = append(problems, fmt.Sprintf("the file ends at offset %#x, before the notes of program header %d at offset %#x", end, i, p.offset))
			continue
		}
		size := p.fileSize
		if size > end-p.offset {
			problems = append(problems, fmt.Sprintf("the file ends at offset %#x, within the notes of program header %d at offset %#x, size %#x", end, i, p.offset, size))
			size = end - p.offset
		}
		spans = append(spans, span{i, p.offset, p.offset + size})
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	kept := spans[:0]
	for _, s := range spans {
		if len(kept) > 0 && s.start < kept[len(kept)-1].end {
			problems = append(problems, fmt.Sprintf("the notes of program header %d at offset %#x overlap those of program header %d and are left out",
				s.header, s.start, kept[len(kept)-1].header))
			continue
		}
		kept = append(kept, s)
	}
	slices.SortStableFunc(kept, func(a, b span) int { return a.header - b.header })
	list = make([]note, 0, min(16, len(data)/12)) // enough for a process with one thread
	for _, s := range kept {
		align := h.programs[s.header].align
		var problem string
		list, problem = appendNotes(list, h.numbers, data[s.start:s.end], s.start, align)
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	return list, problems
}

// appendNotes appends the notes in b, which begins at an offset of the core
// (System V gABI, Note Section). Owner and data are padded to 4 bytes; to 8
// where the segment's alignment is 8. Linux writes an alignment of 0 or 4 and
// gdb 1 for cores, all of them with padding to 4.
func appendNotes(list []note, n numbers, b []byte, offset, align uint64) ([]note, string) {
	if align != 8 {
		align = 4
	}
	size := uint64(len(b))
	for next := uint64(0); next < size; {
		if size-next < 12 {
			// Producers may pad the end of the segment.
			if len(bytes.Trim(b[next:], "\x00")) == 0 {
				return list, ""
			}
			return list, fmt.Sprintf("offset %#x: note header cut: %d bytes, expected 12", offset+next, size-next)
		}
		ownerSize := uint64(n.order.Uint32(b[next:]))
		dataSize := uint64(n.order.Uint32(b[next+4:]))
		typ := n.order.Uint32(b[next+8:])
		start := alignUp(next+12+ownerSize, align)
		if ownerSize > size-next-12 || start > size && dataSize > 0 || start <= size && dataSize > size-start {
			return list, fmt.Sprintf("offset %#x: note of type %#x with an owner of %#x bytes and %#x bytes of data is cut: %#x bytes are there",
				offset+next, typ, ownerSize, dataSize, size-next)
		}
		owner := b[next+12 : next+12+ownerSize]
		if i := bytes.IndexByte(owner, 0); i >= 0 {
			owner = owner[:i]
		}
		nt := note{owner: ownerName(owner), typ: typ, offset: offset + next}
		if dataSize > 0 {
			nt.data = b[start : start+dataSize : start+dataSize]
		}
		list = append(list, nt)
		next = alignUp(start+dataSize, align)
	}
	return list, ""
}

// ownerName returns the owner of a note. The usual owners take no memory.
func ownerName(b []byte) string {
	for _, known := range [...]string{coreOwner, "LINUX", "GNU"} {
		if string(b) == known {
			return known
		}
	}
	return string(b)
}

func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
