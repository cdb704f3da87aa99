// SPDX-License-Identifier: Apache-2.0

// Package isa decodes the machine code of AMD's graphics processors from gfx9
// to gfx12, gfx1250 included: the length of every instruction, the registers that it writes and
// where control goes; and in full the instructions by which compilers make
// frames: scalar moves and arithmetic, execution masks, lanes and accumulation
// registers, spills to private memory, calls.
package isa

import (
	"errors"
	"math/bits"
)

// Errors of Decode. They are wrapped; errors.Is finds them.
var (
	ErrTruncated = errors.New("instruction is cut short") // the code ends within it
	ErrUnknown   = errors.New("no such instruction")      // the target has none in that encoding
)

// Reg is a scalar register, by its number in instructions. Where generations differ
// it is gfx9's, so that a register has one number on all of them.
type Reg uint8

// Scalar registers. s0 to s105 are 0 to 105; gfx9 has them to s101.
const (
	VCCLo         Reg = 106
	VCCHi         Reg = 107
	TTMP0         Reg = 108 // to TTMP15, 123
	M0            Reg = 124
	Null          Reg = 125 // reads as zero, and writes are dropped: it is never among Writes
	ExecLo        Reg = 126
	ExecHi        Reg = 127
	FlatScratchLo Reg = 128 // an operand on gfx9, a hardware register from gfx10 on
	FlatScratchHi Reg = 129
	XNACKMaskLo   Reg = 130 // likewise
	XNACKMaskHi   Reg = 131
	SCC           Reg = 132 // one bit
)

// Kind is a kind of operand.
type Kind uint8

// Kinds of operands.
const (
	None     Kind = iota // there is none
	Scalar               // Width scalar registers from Reg on
	VGPR                 // Width vector registers from Reg on
	AGPR                 // Width accumulation registers from Reg on
	Constant             // Value
	Machine              // a value that only the machine knows: an aperture's base, a lane of LDS, VCCZ
)

// Operand is an operand that an instruction reads or writes.
type Operand struct {
	Kind  Kind
	Width uint8  // in 32-bit registers; 1 or 2 for constants
	Reg   uint16 // the first one's index; a Reg if Kind is Scalar
	// Value is the constant. Of width 1 it is 32 bits, sign-extended. Of width 2,
	// inline integers are sign-extended, inline floating-point numbers are of 64
	// bits, and literals are zero-extended, except SAshrI64's, which are
	// sign-extended. The 16 bits of s_movk and its kind are sign-extended.
	Value int64
}

// Span is a run of vector or accumulation registers.
type Span struct {
	Kind  Kind // VGPR or AGPR; None ends the list
	Count uint8
	First uint16
}

// Writes has the registers that an instruction may write, whichever lanes are active.
// Nothing else changes, except hardware registers that are no operands (MODE) and the
// effects of a trap handler. The instruction need not write all of it: a conditional
// move may leave its destination as it is.
type Writes struct {
	Scalars [3]uint64 // bit r%64 of word r/64 stands for Reg r
	Vectors [3]Span   // a span at the end of a file may run past it
	// IsOfAllLanes is set where the vectors are also written in lanes that EXEC does
	// not name (matrix operations, v_writelane).
	IsOfAllLanes bool
	// HasUnknownScalars and HasUnknownVectors are set where M0 is an index of the
	// registers: any register of the file may be written. Of the scalar registers M0,
	// EXEC and SCC are excepted, unless they are named.
	HasUnknownScalars, HasUnknownVectors bool
}

// HasScalar reports whether a scalar register is among the writes.
func (w *Writes) HasScalar(r Reg) bool {
	return w.HasUnknownScalars && (r < M0 || r > ExecHi) && r != SCC || w.Scalars[r/64%3]>>(r%64)&1 != 0
}

// HasVector reports whether a vector register (VGPR) or accumulation register (AGPR)
// is among the writes.
func (w *Writes) HasVector(k Kind, index uint16) bool {
	if w.HasUnknownVectors {
		return true
	}
	for _, s := range &w.Vectors {
		if s.Kind == k && index >= s.First && index-s.First < uint16(s.Count) {
			return true
		}
	}
	return false
}

// HasExec reports whether EXEC is among the writes, whole or in part.
func (w *Writes) HasExec() bool { return w.Scalars[1]>>(ExecLo-64)&3 != 0 }

// EachScalar calls f for every scalar register named among the writes.
func (w *Writes) EachScalar(f func(Reg)) {
	for i, word := range w.Scalars {
		for ; word != 0; word &= word - 1 {
			f(Reg(64*i + bits.TrailingZeros64(word)))
		}
	}
}

// Flow tells where control goes after an instruction.
type Flow uint8

// Flows.
const (
	Next         Flow = iota // to the next one
	Branch                   // to Target
	CondBranch               // to Target or to the next one
	Indirect                 // to the address in Src[0]
	Call                     // to Target; Dst gets the address of the next one
	IndirectCall             // to the address in Src[0]; Dst gets the address of the next one
	End                      // the wave ends
	Fork                     // to an address on a stack of the machine's (gfx9's s_cbranch_join and its kind)
)

// Inst is an instruction. On gfx1250 its vector registers are within the 256 that
// SSetVGPRMSB selects. Its Op decides which operands are set; Other has none. For
// memory operations (BufferLoad to ScratchStore) Dst is the data loaded, or Src[0] the
// data stored, without the status that some loads write after it.
type Inst struct {
	Op     Op
	Flow   Flow
	Size   uint8  // in bytes, 4 to 20
	Bytes  uint8  // of memory that a lane loads or stores
	Target uint64 // of Branch, CondBranch and Call
	Dst    Operand
	Src    [2]Operand

	// The address of a memory operation: of a buffer, VAddr (None without
	// offen), Base (the resource, of width 4), SOffset and Offset; of scratch, VAddr and Base
	// (either may be None) and Offset, which may be negative.
	VAddr, Base, SOffset Operand
	Offset               int32
	// IsIndexed is set where a buffer operation has idxen: VAddr begins with an index,
	// and the address is not the sum of its parts.
	IsIndexed bool

	Writes Writes
}
