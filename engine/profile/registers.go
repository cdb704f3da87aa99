// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math/bits"

	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/sdk"
)

// A registerReader reads the registers of samples. Those of one mask are at the same
// places in each sample, which are found once.
type registerReader struct {
	registers sdk.Registers
	mask      uint64 // of the sample before
	copies    []registerCopy
	known     bool // copies are all that is to be done for the mask
}

// A registerCopy is a register's bytes in a sample and in Registers.Data.
type registerCopy struct{ from, to, size uint32 }

// read reads the registers of a sample over those of the one before.
func (r *registerReader) read(set *sdk.RegisterSet, in *perfdata.Registers) *sdk.Registers {
	if in.Mask != r.mask {
		*r = registerReader{mask: in.Mask, copies: r.copies[:0]}
	}
	isWhole := len(in.Values) == 8*bits.OnesCount64(in.Mask)
	if r.known && isWhole {
		for _, c := range r.copies {
			copy(r.registers.Data[c.to:c.to+c.size], in.Values[c.from:c.from+c.size])
		}
		return &r.registers
	}
	set.DecodeSample(in.Mask, in.Values, &r.registers)
	if isWhole {
		r.learn(set)
	}
	return &r.registers
}

// learn finds where the registers of the mask are copied to. Where a register is put
// together from pieces it leaves them to be decoded.
func (r *registerReader) learn(set *sdk.RegisterSet) {
	r.copies = r.copies[:0]
	for i := range set.Fields {
		f := &set.Fields[i]
		if f.Offset > 63 || r.mask>>f.Offset&1 == 0 || f.Size > 8 {
			continue // as DecodeSample does
		}
		at := -1
		for j, n := range r.registers.Numbers {
			if n == f.Register && r.registers.Offsets[j+1]-r.registers.Offsets[j] == f.Size {
				at = int(r.registers.Offsets[j])
			}
		}
		if at < 0 || f.RegisterOffset != 0 {
			return
		}
		from := 8 * bits.OnesCount64(r.mask&(1<<f.Offset-1))
		r.copies = append(r.copies, registerCopy{uint32(from), uint32(at), f.Size})
	}
	r.known = true
}
