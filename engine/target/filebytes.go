// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/object"
)

// ReadBytes fills buf from address on with the bytes that bytesAt returns from an address on: none
// where the memory is not known. It is the ReadMemory of a Target.
func ReadBytes(address uint64, buf []byte, bytesAt func(address uint64) ([]byte, error)) (n int, err error) {
	err = object.Guard(func() error {
		for n < len(buf) {
			next := address + uint64(n)
			if next < address {
				return nil
			}
			b, err := bytesAt(next)
			if err != nil || len(b) == 0 {
				return err
			}
			n += copy(buf[n:], b)
		}
		return nil
	})
	switch {
	case err != nil:
		return n, fmt.Errorf("address %#x: %w", address+uint64(n), err)
	case n < len(buf):
		return n, fmt.Errorf("%w: %#x", ErrNoMemory, address+uint64(n))
	}
	return n, nil
}

// FileBytes is the read-only memory of a target whose content the files of its code objects
// have: parts by address, without overlap. Sections of relocatable objects are not among it,
// as loading changes them. The bytes are read inside object.Guard.
type FileBytes []filePart

// filePart is memory that is read from a code object.
type filePart struct {
	start, size uint64
	data        []byte
	module      *Module
}

// NewFileBytes returns the read-only memory of the code objects of modules.
func NewFileBytes(modules []*Module) FileBytes {
	var files FileBytes
	for _, m := range modules {
		if m.Object == nil || m.Object.IsLoaded() {
			continue // the target has its bytes
		}
		data := m.Object.Data()
		for _, p := range m.Object.ReadableSegments() {
			// Windows writes addresses into the constants of a PE file that it loads elsewhere.
			if p.Flags&elf.PF_W != 0 || m.Object.IsPE() && !p.Executable() || p.Offset >= uint64(len(data)) {
				continue
			}
			size := min(p.FileSize, p.MemSize, uint64(len(data))-p.Offset)
			if p.Address+size < p.Address {
				continue
			}
			for _, seg := range m.Segments {
				start, end := max(p.Address, seg.Address), min(p.Address+size, seg.Address+seg.Size)
				if seg.Section != "" || start >= end {
					continue
				}
				files = append(files, filePart{
					start: seg.Start + (start - seg.Address), size: end - start,
					data:   data[p.Offset+(start-p.Address):][:end-start],
					module: m,
				})
			}
		}
	}
	// Segments of different modules do not overlap; segments of one code object may.
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

// At returns the bytes that a code object has from an address on, and its module; next is the
// address where the following part begins.
func (f FileBytes) At(address uint64) (b []byte, module *Module, next uint64) {
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
