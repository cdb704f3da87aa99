// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"context"
	"encoding/binary"

	"github.com/unwindd/unwindd/sdk"
)

// ClassifyReturn finds for each address the call that ends right before it, if any.
func (architecture) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return req.Answer(callBefore)
}

// Opcodes and fields of instructions (RISC-V ISA manual, "RV32/64G Instruction Set
// Listings"): the registers are rd, bits 7 to 11, and rs1, bits 15 to 19.
const (
	opAUIPC = 0x17
	opJALR  = 0x67
	opJAL   = 0x6f

	cJALRMask, cJALR = 0xf07f, 0x9002 // the compressed variant; its register, bits 7 to 11, is not 0
)

// callBefore classifies the call that ends where code ends, and returns its target. The
// last two bytes of a call of four may read as a compressed one, and the bytes before a
// compressed one may be anything: where both readings are calls, there is no target.
func callBefore(pc uint64, code []byte) (class sdk.ReturnClass, target uint64) {
	if pc%2 != 0 {
		return sdk.NotAfterCall, 0
	}
	if len(code) < 2 {
		return sdk.UnknownReturn, 0
	}
	short := binary.LittleEndian.Uint16(code[len(code)-2:])
	if short&cJALRMask == cJALR && short&^cJALRMask != 0 {
		return sdk.AfterIndirectCall, 0
	}
	if len(code) < 4 {
		return sdk.UnknownReturn, 0
	}
	word := binary.LittleEndian.Uint32(code[len(code)-4:])
	switch {
	case rd(word) != ra:
		return sdk.NotAfterCall, 0
	case word&0x7f == opJAL:
		return sdk.AfterDirectCall, pc - 4 + uint64(immediateJ(word))
	case word&0x707f != opJALR:
		return sdk.NotAfterCall, 0
	}
	// The assembler's `call` is two instructions: auipc ra, HIGH; jalr LOW(ra).
	if len(code) >= 8 {
		high := binary.LittleEndian.Uint32(code[len(code)-8:])
		if high&0x7f == opAUIPC && rd(high) == rs1(word) {
			return sdk.AfterDirectCall, pc - 8 + uint64(immediateU(high)+immediateI(word))
		}
	}
	return sdk.AfterIndirectCall, 0
}

func rd(word uint32) uint32  { return word >> 7 & 31 }
func rs1(word uint32) uint32 { return word >> 15 & 31 }

// The immediates of the formats I, U and J (ISA manual, "Immediate Encoding Variants").
func immediateI(word uint32) int64 { return int64(int32(word) >> 20) }
func immediateU(word uint32) int64 { return int64(int32(word & 0xfffff000)) }
func immediateJ(word uint32) int64 {
	return int64(int32(word&0x80000000)>>11) | int64(word&0xff000|word>>9&0x800|word>>20&0x7fe)
}
