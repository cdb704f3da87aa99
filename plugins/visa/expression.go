// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/internal/dw"
)

// expression is an expression in the canonical dialect.
type expression []byte

// constant pushes a number.
func (e expression) constant(n uint64) expression {
	if n < 32 {
		return append(e, dw.OpLit0+byte(n))
	}
	return binary.AppendUvarint(append(e, dw.OpConstu), n)
}

// word pushes the 32 bits at a byte of a register.
func (e expression) word(register uint32, offset uint64) expression {
	return append(e.constant(uint64(register)).constant(8*offset), dw.OpLLVMUser, dw.UserIntelRegvalBits, 32)
}

// framePointer pushes the address in the scratch space that is in a register, in
// units of so many bytes.
func (e expression) framePointer(register uint32, offset, unit uint64) expression {
	e = e.word(register, offset)
	if unit != 1 {
		e = append(e.constant(unit), dw.OpMul)
	}
	return e
}

// plus adds a number.
func (e expression) plus(n uint64) expression {
	if n == 0 {
		return e
	}
	return append(e.constant(n), dw.OpPlus)
}

// inScratch turns an address into a place in the scratch space.
func (e expression) inScratch() expression {
	return append(e.constant(uint64(scratch)), dw.OpLLVMUser, dw.UserFormAspaceAddress)
}

// inRegister pushes the place at a byte of a register.
func (e expression) inRegister(register uint32, offset uint64) expression {
	e = binary.AppendUvarint(append(e, dw.OpRegx), uint64(register))
	if offset == 0 {
		return e
	}
	return binary.AppendUvarint(append(e, dw.OpLLVMUser, dw.UserOffsetUconst), offset)
}

// drop removes the top of the stack.
func (e expression) drop() expression { return append(e, dw.OpDrop) }

// piece makes the place on top so many bytes of a composite.
func (e expression) piece(size uint64) expression {
	return binary.AppendUvarint(append(e, dw.OpPiece), size)
}

// offset moves the place on top by so many bytes.
func (e expression) offset(n uint64) expression {
	return binary.AppendUvarint(append(e, dw.OpLLVMUser, dw.UserOffsetUconst), n)
}
