// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math/bits"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/sdk"
)

// registerReader reads the registers of samples. Registers of one mask are at the same places
// in each sample, which are found once.
type registerReader struct {
	registers sdk.Registers
	mask      uint64 // of the sample before
	copies    []registerCopy
	known     bool // copies are all work for the mask
}

// registerCopy copies a register from a sample to Registers.Data.
type registerCopy struct{ from, to, size uint32 }

// read reads the registers of a sample over the previous sample's.
func (r *registerReader) read(set *sdk.RegisterSet, recorded *perfdata.Registers) *sdk.Registers {
	if recorded.Mask != r.mask {
		*r = registerReader{mask: recorded.Mask, copies: r.copies[:0]}
	}
	isWhole := len(recorded.Values) == 8*bits.OnesCount64(recorded.Mask)
	if r.known && isWhole {
		for _, c := range r.copies {
			copy(r.registers.Data[c.to:c.to+c.size], recorded.Values[c.from:c.from+c.size])
		}
		return &r.registers
	}
	set.DecodeSample(recorded.Mask, recorded.Values, &r.registers)
	if isWhole {
		r.learn(set)
	}
	return &r.registers
}

// learn finds the places of the mask's registers. Where a register is put together from pieces,
// all are left to be decoded.
func (r *registerReader) learn(set *sdk.RegisterSet) {
	r.copies = r.copies[:0]
	for i := range set.Fields {
		f := &set.Fields[i]
		if f.Offset > 63 || r.mask>>f.Offset&1 == 0 || f.Size > 8 {
			continue // as DecodeSample does
		}
		target := -1
		for j, n := range r.registers.Numbers {
			if n == f.Register && r.registers.Offsets[j+1]-r.registers.Offsets[j] == f.Size {
				target = int(r.registers.Offsets[j])
			}
		}
		if target < 0 || f.RegisterOffset != 0 {
			return
		}
		source := 8 * bits.OnesCount64(r.mask&(1<<f.Offset-1))
		r.copies = append(r.copies, registerCopy{uint32(source), uint32(target), f.Size})
	}
	r.known = true
}
