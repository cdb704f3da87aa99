// SPDX-License-Identifier: Apache-2.0

package sdk

import "math/bits"

// Decode adds the registers of a record to into. A field that reaches past the
// end of the record is absent. So is a piece of a register whose bytes below
// the piece are unknown: a register never has bytes that were not recorded. Sets
// of several records may be decoded into the same registers, one after the
// other; a register that is already there keeps the bytes that the record
// lacks.
//
// A set of the source PerfSample is decoded by DecodeSample.
func (s *RegisterSet) Decode(record []byte, into *Registers) {
	if s.Source == PerfSample {
		return
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if end := uint64(f.Offset) + uint64(f.Size); end <= uint64(len(record)) {
			into.setPiece(f.Register, f.RegisterOffset, record[f.Offset:end])
		}
	}
}

// DecodeSample adds the registers of a perf sample to into. mask is
// sample_regs_user (or sample_regs_intr); record has eight bytes for each bit
// that is set in it, lowest bit first, as perf_event_open(2) writes them.
func (s *RegisterSet) DecodeSample(mask uint64, record []byte, into *Registers) {
	if s.Source != PerfSample {
		return
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.Offset > 63 || mask>>f.Offset&1 == 0 || f.Size > 8 {
			continue
		}
		offset := 8 * bits.OnesCount64(mask&(1<<f.Offset-1))
		if offset+8 <= len(record) {
			into.setPiece(f.Register, f.RegisterOffset, record[offset:offset+int(f.Size)])
		}
	}
}

// setPiece writes value over the bytes of a register from offset on, making
// the register longer where needed. It does nothing where that would leave a
// gap.
func (r *Registers) setPiece(number, offset uint32, value []byte) {
	if len(value) == 0 {
		return
	}
	old, ok := r.Get(number)
	if offset == 0 && (!ok || len(old) <= len(value)) {
		r.Set(number, value)
		return
	}
	if !ok || uint64(offset) > uint64(len(old)) {
		return
	}
	if uint64(offset)+uint64(len(value)) <= uint64(len(old)) {
		copy(old[offset:], value)
		return
	}
	whole := make([]byte, 0, int(offset)+len(value))
	whole = append(whole, old[:offset]...)
	r.Set(number, append(whole, value...))
}
