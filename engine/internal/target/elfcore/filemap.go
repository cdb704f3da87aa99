// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// maxFileRanges bounds the mappings of NT_FILE.
const maxFileRanges = 1 << 22

// fileRange is a mapping of a file.
type fileRange struct {
	start, end   uint64
	offset       uint64 // in the file, in bytes
	path         string
	isExecutable bool // by the code object, if the core has no program header for it
}

// fileRanges are the mappings of files, sorted by start, without overlap.
type fileRanges struct{ list []fileRange }

// readFileNote reads NT_FILE: count and page size, then for each mapping its start,
// end and offset in pages, all of them words, then a name for each that ends with
// NUL (Linux, fs/binfmt_elf.c, fill_files_note). The kernel writes offsets in its
// pages; gdb writes bytes, with a page size of 1.
func readFileNote(n numbers, data []byte) (f *fileRanges, problems []string) {
	f = &fileRanges{}
	size := n.size()
	if len(data) < 2*size {
		return f, []string{fmt.Sprintf("NT_FILE has %d bytes, expected at least %d", len(data), 2*size)}
	}
	count, page := n.word(data), n.word(data[size:])
	rest := data[2*size:]
	if most := min(uint64(len(rest)/(3*size)), maxFileRanges); count > most {
		problems = append(problems, fmt.Sprintf("NT_FILE says %d mappings, but its %d bytes have room for %d at most", count, len(data), most))
		return f, problems
	}
	names := rest[count*uint64(3*size):]
	path := "" // consecutive mappings of a file share its name
	f.list = make([]fileRange, 0, count)
	var bad int
	var firstBad string
	for i := range count {
		record := rest[i*uint64(3*size):]
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			problems = append(problems, fmt.Sprintf("NT_FILE has names for %d of its %d mappings", i, count))
			break
		}
		if path != string(names[:end]) {
			path = string(names[:end])
		}
		names = names[end+1:]
		r := fileRange{start: n.word(record), end: n.word(record[size:]), path: path}
		pages := n.word(record[2*size:])
		r.offset = pages * page
		if r.end <= r.start || page != 0 && r.offset/page != pages || r.offset+(r.end-r.start) < r.offset {
			if bad++; bad == 1 {
				firstBad = fmt.Sprintf("mapping %d: %#x to %#x at page %#x of %d bytes", i, r.start, r.end, pages, page)
			}
			continue
		}
		f.list = append(f.list, r)
	}
	if bad > 0 {
		problems = append(problems, fmt.Sprintf("%d mappings of NT_FILE are impossible, the first is %s", bad, firstBad))
	}
	slices.SortStableFunc(f.list, func(a, b fileRange) int { return cmp.Compare(a.start, b.start) })
	kept := f.list[:0]
	overlaps := 0
	for _, r := range f.list {
		if len(kept) > 0 && r.start < kept[len(kept)-1].end {
			overlaps++
			continue
		}
		kept = append(kept, r)
	}
	f.list = kept
	if overlaps > 0 {
		problems = append(problems, fmt.Sprintf("%d mappings of NT_FILE overlap the one before them and are left out", overlaps))
	}
	return f, problems
}

// containing returns the mapping that contains an address; nil if none does.
func (f *fileRanges) containing(address uint64) *fileRange {
	if f == nil {
		return nil
	}
	i := sort.Search(len(f.list), func(i int) bool { return f.list[i].start > address })
	if i == 0 || address >= f.list[i-1].end {
		return nil
	}
	return &f.list[i-1]
}

// overlapping returns the mappings that share an address with size bytes from
// start on. start+size does not wrap.
func (f *fileRanges) overlapping(start, size uint64) []fileRange {
	first := sort.Search(len(f.list), func(i int) bool { return f.list[i].end > start })
	last := sort.Search(len(f.list), func(i int) bool { return f.list[i].start >= start+size })
	if first >= last {
		return nil
	}
	return f.list[first:last]
}
