// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Parts of __LD,__compact_unwind of object files, of which linkers make __TEXT,__unwind_info.
const (
	objectUnwindEntry = 32 // the address and the size of code, the encoding, a personality, data for exceptions
	objectSectionName = "__compact_unwind"
)

// readObjectUnwind reads the compact unwind information of an object file. Linkers add to its encodings the numbers of
// personalities and the places of FDEs.
func (f *File) readObjectUnwind() (*UnwindInfo, error) {
	s := f.Section("__LD", objectSectionName)
	if s == nil || !s.HasBytes() || s.Size == 0 || !f.hasEncodings() {
		return nil, nil //nolint:nilnil // there is none
	}
	data, err := f.Relocated(s)
	if err != nil {
		return nil, err
	}
	u := &UnwindInfo{file: f, section: "__LD," + objectSectionName, isObject: true}
	if rest := len(data) % objectUnwindEntry; rest != 0 {
		return nil, u.errorf(uint64(len(data)-rest), "%d bytes, expected entries of %d: %w", len(data), objectUnwindEntry, errUnwindInfo)
	}
	le := binary.LittleEndian
	for offset := 0; offset < len(data); offset += objectUnwindEntry {
		b := data[offset:][:objectUnwindEntry]
		e := UnwindEntry{Start: le.Uint64(b), Encoding: UnwindEncoding(le.Uint32(b[12:])), Offset: uint64(offset)}
		if e.End = e.Start + uint64(le.Uint32(b[8:])); e.End < e.Start {
			return nil, u.errorf(e.Offset, "code at %#x of %#x bytes is no range: %w", e.Start, e.End-e.Start, errUnwindInfo)
		}
		u.entries = append(u.entries, e)
	}
	slices.SortStableFunc(u.entries, func(a, b UnwindEntry) int { return cmp.Compare(a.Start, b.Start) })
	return u, nil
}

// objectAt is At of an object file.
func (u *UnwindInfo) objectAt(address uint64) (e UnwindEntry, ok bool) {
	i, isStart := slices.BinarySearchFunc(u.entries, address, func(e UnwindEntry, address uint64) int { return cmp.Compare(e.Start, address) })
	if !isStart {
		i--
	}
	if i < 0 || address >= u.entries[i].End {
		return e, false
	}
	return u.entries[i], true
}
