// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// EachFrameData calls yield with all records of frame data of 32-bit x86, then with the older FPO's,
// each list by address, until it returns false.
func (f *File) EachFrameData(yield func(*symbol.FrameData) bool) {
	f.guard(func() {
		t := f.frameData()
		if f.eachFrameRecord(t.data, frameDataSize, f.parseFrameData, yield) {
			f.eachFrameRecord(t.fpo, fpoSize, parseFPO, yield)
		}
	})
}

// eachFrameRecord calls yield with the records of a table, and reports whether it never returned
// false.
func (f *File) eachFrameRecord(s *msf.Stream, size uint32, parse func(r fields) symbol.FrameData, yield func(*symbol.FrameData) bool) bool {
	if s == nil {
		return true
	}
	for at := uint32(0); at+size <= s.Size(); at += size {
		r, err := readAt(s, at, size)
		if err != nil {
			f.note(err)
			return true
		}
		d := parse(r)
		start, ok := f.address(uint32(d.Start)) //nolint:gosec // an RVA
		if !ok || d.End <= d.Start {
			continue
		}
		d.Start, d.End = start, start+(d.End-d.Start)
		if !yield(&d) {
			return false
		}
	}
	return true
}
