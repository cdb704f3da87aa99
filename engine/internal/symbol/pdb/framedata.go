// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// frameTables are the streams of frame data and of the older FPO. Either may be nil.
type frameTables struct{ data, fpo *msf.Stream }

const (
	frameDataSize = 32
	fpoSize       = 16
)

func (f *File) readFrameTables() *frameTables {
	t := &frameTables{}
	for number, s := range map[uint16]**msf.Stream{f.dbi.debug[debugFrameData]: &t.data, f.dbi.debug[debugFPO]: &t.fpo} {
		if number != noStream {
			*s = f.container.Stream(int(number))
		}
	}
	return t
}

// maxNested bounds the records before an address that are looked at: records of a function end
// where it ends, and there is one for each of its first instructions.
const maxNested = 256

// FrameData returns the frame data of 32-bit x86 at an address.
func (f *File) FrameData(address uint64) (d symbol.FrameData, ok bool) {
	if address < f.base || address-f.base > 0xffffffff {
		return d, false
	}
	f.guard(func() {
		rva, isThere := f.dbi.omap.toSymbols(uint32(address - f.base)) //nolint:gosec // checked
		if !isThere {
			return
		}
		t := f.frameData()
		if d, ok = f.frameRecord(t.data, frameDataSize, rva, f.parseFrameData); !ok {
			d, ok = f.frameRecord(t.fpo, fpoSize, rva, parseFPO)
		}
	})
	return d, ok
}

// frameRecord finds the last record that has an RVA in a table by address, and gives it
// addresses.
func (f *File) frameRecord(s *msf.Stream, size, rva uint32, parse func(r fields) symbol.FrameData) (d symbol.FrameData, ok bool) {
	if s == nil {
		return d, false
	}
	at := func(i int) fields {
		r, err := readAt(s, uint32(i)*size, size) //nolint:gosec // inside the stream
		f.note(err)
		return r
	}
	i := sort.Search(int(s.Size()/size), func(i int) bool { r := at(i); return r.U32() > rva })
	for steps := 0; i > 0 && steps < maxNested; i, steps = i-1, steps+1 {
		d = parse(at(i - 1))
		if uint64(rva) < d.End {
			start, ok := f.address(uint32(d.Start)) //nolint:gosec // an RVA
			d.Start, d.End = start, start+(d.End-d.Start)
			return d, ok
		}
	}
	return symbol.FrameData{}, false
}

// parseFrameData reads a record of frame data (FRAMEDATA of cvinfo.h).
func (f *File) parseFrameData(r fields) (d symbol.FrameData) {
	d.Start = uint64(r.U32())
	d.End = d.Start + uint64(r.U32())
	d.Locals, d.Parameters, d.MaxStack = uint64(r.U32()), uint64(r.U32()), uint64(r.U32())
	program := r.U32()
	d.Prologue, d.SavedRegisters = uint64(r.U16()), uint64(r.U16())
	d.Program = f.names().text(program)
	return d
}

// parseFPO reads a record of FPO (FPO_DATA of winnt.h), whose sizes are in words of 4 bytes.
func parseFPO(r fields) (d symbol.FrameData) {
	const word = 4
	d.IsFPO = true
	d.Start = uint64(r.U32())
	d.End = d.Start + uint64(r.U32())
	d.Locals, d.Parameters = word*uint64(r.U32()), word*uint64(r.U16())
	d.Prologue = uint64(r.U8())
	bits := r.U8() // registers: 3 bits, an exception handler, use of ebp, and the kind of frame
	d.SavedRegisters = word * uint64(bits&7)
	d.AllocatesBasePointer = bits&0x10 != 0
	return d
}
