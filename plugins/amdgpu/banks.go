// SPDX-License-Identifier: Apache-2.0

package amdgpu

import "github.com/unwindd/unwindd/plugins/amdgpu/isa"

// banks is the mode of the upper bits of vector registers' numbers, which s_set_vgpr_msb
// sets: instructions of gfx1250 have eight bits for each, and waves have 1024 registers.
// LLVM (AMDGPULowerVGPREncoding) makes every function begin and end in mode 0, and call
// others in it.
type banks uint16

const (
	anyBanks  banks = 1 << 8 // the mode is not known
	bankSize        = 256
	elsewhere       = 1 << 14 // added to a register's number: nothing is known of the register

	modeRegister = 1             // the hardware register with the mode,
	modeBits     = 0xff << 12    // and its bits there
	modeFirst    = 12            //
	modeEnd      = modeFirst + 8 //
)

func (b banks) first() uint16  { return uint16(b&3) * bankSize }
func (b banks) result() uint16 { return uint16(b>>6&3) * bankSize }

// setBanks applies what an instruction does to the mode.
func (x *stepper) setBanks(inst *isa.Inst) {
	switch inst.Op {
	case isa.SSetVGPRMSB:
		x.s.banks = banks(inst.Src[0].Value & 0xff) //nolint:gosec // eight bits
	case isa.SSetreg:
		field := uint64(inst.Src[1].Value) //nolint:gosec // 16 bits
		begin, size := field>>6&31, field>>11&31+1
		switch {
		case x.processor.vgprs <= bankSize || field&63 != modeRegister:
		case inst.Src[0].Kind == isa.Constant && inst.Src[0].Value&modeBits == 0 && x.s.banks == 0:
			// Some processors take the mode from a constant wherever the field is; it is 0 either way.
		case inst.Src[0].Kind == isa.Constant, begin < modeEnd && begin+size > modeFirst:
			x.s.banks = anyBanks
		}
	}
}

// banked applies an instruction on vector registers in another mode than 0, or returns
// one that names the registers by their whole numbers. Where it is not certain which
// register is written, all candidates are unknown after it.
func (x *stepper) banked(inst *isa.Inst) (whole isa.Inst, isApplied bool) {
	whole = *inst
	mode := x.s.banks
	if inst.Op == isa.BufferStore || inst.Op == isa.ScratchStore {
		whole.Src[0].Reg += elsewhere
		return whole, false
	}
	if whole.Src[0].Kind == isa.VGPR {
		whole.Src[0].Reg += mode.first()
		if mode == anyBanks {
			whole.Src[0].Reg += elsewhere
		}
	}
	written := &whole.Writes.Vectors
	if written[0].Kind != isa.VGPR {
		return whole, false
	}
	if mode != anyBanks && written[1].Kind == isa.None {
		whole.Dst.Reg += mode.result()
		written[0].First += mode.result()
		return whole, false
	}
	for range vectors / bankSize {
		x.clobber(&whole)
		for i := range written {
			written[i].First += bankSize
		}
	}
	return whole, true
}
