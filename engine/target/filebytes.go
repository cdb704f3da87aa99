// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
)

// FileBytes are the memory that code objects have, and that nobody can have written to:
// the parts that are mapped without the right to write, by address, without overlap.
// Sections of a relocatable object were changed by loading them. The bytes are read
// inside object.Guard.
type FileBytes []filePart

// A filePart is memory that is read from a code object.
type filePart struct {
	start, size uint64
	data        []byte
	module      *Module
}

// NewFileBytes are those of the code objects of modules.
func NewFileBytes(modules []*Module) FileBytes {
	var files FileBytes
	for _, m := range modules {
		if m.Object == nil {
			continue
		}
		data := m.Object.Data()
		for _, p := range m.Object.Segments() {
			// Windows writes addresses into the constants of a PE file that it loads elsewhere.
			if p.Flags&elf.PF_W != 0 || m.Object.IsPE() && !p.Executable() || p.Offset >= uint64(len(data)) {
				continue
			}
			size := min(p.FileSize, p.MemSize, uint64(len(data))-p.Offset)
			if p.Address+size < p.Address {
				continue
			}
			for _, seg := range m.Segments {
				from, to := max(p.Address, seg.Address), min(p.Address+size, seg.Address+seg.Size)
				if seg.Section != "" || from >= to {
					continue
				}
				files = append(files, filePart{
					start: seg.Start + (from - seg.Address), size: to - from,
					data:   data[p.Offset+(from-p.Address):][:to-from],
					module: m,
				})
			}
		}
	}
	// Segments of modules do not overlap; those of one code object may.
	slices.SortStableFunc(files, func(a, b filePart) int { return cmp.Compare(a.start, b.start) })
	kept := files[:0]
	var end uint64
	for _, f := range files {
		if f.start < end {
			continue
		}
		end = f.start + f.size
		kept = append(kept, f)
	}
	return kept
}

// At finds the bytes that code objects have from an address on, and whose they are.
// next is where others begin.
func (f FileBytes) At(address uint64) (b []byte, of *Module, next uint64) {
	i := sort.Search(len(f), func(i int) bool { return f[i].start > address })
	next = ^uint64(0)
	if i < len(f) {
		next = f[i].start
	}
	if i == 0 || address-f[i-1].start >= f[i-1].size {
		return nil, nil, next
	}
	return f[i-1].data[address-f[i-1].start:], f[i-1].module, next
}
