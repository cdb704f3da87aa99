// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
)

// functionCode is the code of a section, as far as instructions have 16 bytes; the zero value
// has none.
type functionCode struct {
	start uint64
	bytes []byte
}

// codeOf returns the code that an FDE is for.
func (o *codeObject) codeOf(fde *cfi.FDE) *functionCode {
	if number := processorNumber(o.answer.Processor); number < firstWide {
		return &functionCode{}
	}
	index := fde.Code
	if index == 0 {
		index = o.sectionAt(fde.Start)
	}
	if uint64(index) >= uint64(len(o.req.Sections)) || !isCode(&o.req.Sections[index]) {
		return &functionCode{}
	}
	s := &o.req.Sections[index]
	if _, isRead := o.code[index]; !isRead {
		if o.code == nil {
			o.code = map[uint32][]byte{}
		}
		o.code[index] = o.section(s.Name)
	}
	return &functionCode{s.Address, o.code[index]}
}

// instruction is the first half of an instruction of sm_70 and later, and its second half. 0
// is none.
type instruction struct{ low, high uint64 }

// The operations that are known, in the low 12 bits of an instruction. What they are was
// found by nvdisasm.
const (
	operationStoreLocal = 0x387 // STL [Ra+offset], Rb
	maskOperation       = 0xfff
)

// setsRegister are operations that write a register with the sum or the copy of others.
var setsRegister = map[uint64]bool{
	0x202: true, // MOV
	0x210: true, // IADD3 of registers
	0x224: true, // IMAD of registers
	0x810: true, // IADD3 with a number
	0x836: true, // VIADD
}

// instructionBefore returns the instruction right before an address; none where there is no code.
func (c *functionCode) instructionBefore(address uint64) instruction {
	offset := address - c.start
	if address < c.start || offset < maxInstruction || offset > uint64(len(c.bytes)) || offset%maxInstruction != 0 {
		return instruction{}
	}
	b := c.bytes[offset-maxInstruction:]
	return instruction{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// storeOf returns the offset from R1 at which the instruction stores a register.
func (i instruction) storeOf(column uint64) (offset int64, ok bool) {
	const sizeShift, sizeMask, size32 = 9, 7, 4 // in the second half: 4 is 32 bits, 5 is 64, 6 is 128
	base, data := i.low>>24&0xff, i.low>>32&0xff
	words := uint64(1)
	if size := i.high >> sizeShift & sizeMask; size >= size32 {
		words <<= size - size32
	}
	if i.low&maskOperation != operationStoreLocal || base != uint64(r1-r0) || column < uint64(r0)+data || column >= uint64(r0)+data+words {
		return 0, false
	}
	return int64(i.low)>>40 + 4*int64(column-uint64(r0)-data), true //nolint:gosec // both are small
}

// setsStackPointer reports whether the instruction writes R1.
func (i instruction) setsStackPointer() bool {
	return setsRegister[i.low&maskOperation] && i.low>>16&0xff == uint64(r1-r0)
}
