// SPDX-License-Identifier: Apache-2.0

package visa

import "encoding/binary"

// Operations of DWARF expressions (DWARF 5, 7.7.1), and after opUser those of the
// canonical dialect that DWARF has no number for.
const (
	opConstu = 0x10
	opDrop   = 0x13
	opMul    = 0x1e
	opPlus   = 0x22
	opLit0   = 0x30
	opRegx   = 0x90
	opPiece  = 0x93
	opUser   = 0xe9

	userFormAddress  = 0x02 // DW_OP_LLVM_form_aspace_address
	userOffsetUconst = 0x05 // DW_OP_LLVM_offset_uconst
	userRegvalBits   = 0x55 // DW_OP_INTEL_regval_bits
)

// An expression is one in the canonical dialect.
type expression []byte

// constant pushes a number.
func (e expression) constant(n uint64) expression {
	if n < 32 {
		return append(e, opLit0+byte(n))
	}
	return binary.AppendUvarint(append(e, opConstu), n)
}

// word pushes the 32 bits at a byte of a register.
func (e expression) word(register uint32, at uint64) expression {
	return append(e.constant(uint64(register)).constant(8*at), opUser, userRegvalBits, 32)
}

// framePointer pushes the address in the scratch space that is in a register, in
// units of so many bytes.
func (e expression) framePointer(register uint32, at, unit uint64) expression {
	e = e.word(register, at)
	if unit != 1 {
		e = append(e.constant(unit), opMul)
	}
	return e
}

// plus adds a number.
func (e expression) plus(n uint64) expression {
	if n == 0 {
		return e
	}
	return append(e.constant(n), opPlus)
}

// inScratch makes a place in the scratch space of an address.
func (e expression) inScratch() expression {
	return append(e.constant(uint64(scratch)), opUser, userFormAddress)
}

// inRegister pushes the place at a byte of a register.
func (e expression) inRegister(register uint32, at uint64) expression {
	e = binary.AppendUvarint(append(e, opRegx), uint64(register))
	if at == 0 {
		return e
	}
	return binary.AppendUvarint(append(e, opUser, userOffsetUconst), at)
}

// drop takes away what is on top.
func (e expression) drop() expression { return append(e, opDrop) }

// piece makes the place on top so many bytes of a composite.
func (e expression) piece(size uint64) expression {
	return binary.AppendUvarint(append(e, opPiece), size)
}

// offset moves the place on top by so many bytes.
func (e expression) offset(n uint64) expression {
	return binary.AppendUvarint(append(e, opUser, userOffsetUconst), n)
}
