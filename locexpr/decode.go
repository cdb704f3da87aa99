// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/internal/ehpe"
	"github.com/unwindd/unwindd/internal/leb128"
)

// OperandKind is the encoding and the meaning of an operand.
type OperandKind uint8

// The kinds of operands (DWARF 5, 2.5 and 7.7).
const (
	NoOperand      OperandKind = iota
	Unsigned1                  // 1-byte unsigned integer
	Unsigned2                  // 2-byte unsigned integer
	Unsigned4                  // 4-byte unsigned integer
	Unsigned8                  // 8-byte unsigned integer
	Signed1                    // 1-byte signed integer
	Signed2                    // 2-byte signed integer
	Signed4                    // 4-byte signed integer
	Signed8                    // 8-byte signed integer
	ULEB                       // unsigned LEB128
	SLEB                       // signed LEB128
	RegisterNum                // unsigned LEB128: a DWARF register number
	Address                    // unsigned integer of the size of the generic type
	EntryOffset                // 4 or 8 bytes by the DWARF format: an offset in .debug_info
	Branch                     // 2-byte signed distance in bytes from the end of the operation
	Block                      // unsigned LEB128 length and that many bytes
	Expression                 // unsigned LEB128 length and the bytes of an expression
	TypeOffset                 // unsigned LEB128: the offset of a base type in the compilation unit
	UnitEntry2                 // 2-byte unsigned integer: an offset in the compilation unit
	UnitEntry4                 // 4-byte unsigned integer: an offset in the compilation unit
	Block1                     // 1-byte length and that many bytes
	EncodedPointer             // an address in the pointer encoding that the operand before it is (LSB 10.5.1)
	userNumber                 // unsigned LEB128: the number of a vendor's operation
)

// isSigned reports whether an operand of the kind is a signed integer.
func (k OperandKind) isSigned() bool {
	switch k {
	case Signed1, Signed2, Signed4, Signed8, SLEB, Branch:
		return true
	}
	return false
}

// Instruction is one operation of an expression with its operands.
type Instruction struct {
	Offset   int        // of its opcode, in bytes from the start of the expression
	Size     int        // bytes, opcode and operands
	Op       *Operation // what it does
	Operands [2]uint64  // in the order of Op.Operands; signed ones are sign-extended
	Block    []byte     // the bytes of a Block, Block1 or Expression operand, not copied
}

// Decoder reads the operations of an expression. It checks everything that can be known
// without evaluating: lengths, opcodes, and that branches stay within the expression.
type Decoder struct {
	Expr        []byte
	Dialect     *Dialect // nil: DWARF5
	AddressSize int      // bytes of an Address operand, 1 to 8
	OffsetSize  int      // bytes of an EntryOffset operand: 4 or 8 by the DWARF format; 0 is 4
	Order       ByteOrder

	pos int // of the next operation
}

// Decode reads expr in the 32-bit DWARF format, one operation after the other.
// It ends after the last one, or with the first error, which is an *Error. The
// blocks of the instructions are parts of expr.
func Decode(expr []byte, d *Dialect, addressSize int, order ByteOrder) iter.Seq2[Instruction, error] {
	return func(yield func(Instruction, error) bool) {
		dec := Decoder{Expr: expr, Dialect: d, AddressSize: addressSize, Order: order}
		for dec.More() {
			var instruction Instruction
			err := dec.Next(&instruction)
			if !yield(instruction, err) || err != nil {
				return
			}
		}
	}
}

// More reports whether there is another operation to read.
func (d *Decoder) More() bool { return d.pos < len(d.Expr) }

// Next reads the next operation. After an error, which is an *Error, it reads
// the same bytes again. At the end of the expression it is an error.
func (d *Decoder) Next(instruction *Instruction) error {
	if d.Dialect == nil {
		d.Dialect = DWARF5
	}
	pos := d.pos
	err := d.next(instruction)
	if err == nil && instruction.Op.Operands[0] == Branch {
		_, err = d.target(instruction)
	}
	if err != nil {
		d.pos = pos
		e := &Error{Kind: IllFormed, Offset: d.pos, Err: err}
		if instruction.Op != nil {
			e.Op = instruction.Op.Name
		}
		return e
	}
	return nil
}

// next is Next without the wrapping of errors, and without a check of the targets of
// branches. instruction.Op is nil when the opcode was not found.
func (d *Decoder) next(instruction *Instruction) error {
	pos := d.pos
	instruction.Offset = pos
	if pos >= len(d.Expr) {
		instruction.Op = nil
		return fmt.Errorf("operation expected at the end of the expression")
	}
	opcode := d.Expr[pos]
	tables := d.Dialect.tables()
	op := &tables.operations[opcode]
	instruction.Op = op
	if op.Name == "" {
		instruction.Op = nil
		return fmt.Errorf("opcode 0x%02x is no operation of dialect %s", opcode, d.Dialect.Name)
	}
	pos++
	if op.isPrefix() {
		number, next, err := d.uleb(pos)
		if err != nil {
			return err
		}
		op = tables.user[number]
		instruction.Op = op
		if op == nil {
			return fmt.Errorf("opcode 0x%02x 0x%x is no operation of dialect %s", opcode, number, d.Dialect.Name)
		}
		pos = next
	}
	for i := range op.Operands {
		kind := op.Operands[i]
		if kind == NoOperand {
			break
		}
		value, next, err := d.operand(instruction, kind, pos)
		if err != nil {
			return fmt.Errorf("operand %d: %w", i+1, err)
		}
		instruction.Operands[i] = value
		pos = next
	}
	instruction.Size = pos - d.pos
	d.pos = pos
	return nil
}

// target returns the target of a branch that was just read.
func (d *Decoder) target(instruction *Instruction) (int, error) {
	target := d.pos + int(int64(instruction.Operands[0])) // a distance of 16 bits
	if target < 0 || target > len(d.Expr) {
		return 0, fmt.Errorf("branch to offset %d of an expression of %d bytes", target, len(d.Expr))
	}
	return target, nil
}

// fixedSize has the sizes of operands of fixed size.
var fixedSize = [...]uint8{
	Unsigned1: 1, Unsigned2: 2, Unsigned4: 4, Unsigned8: 8,
	Signed1: 1, Signed2: 2, Signed4: 4, Signed8: 8,
	Branch: 2, UnitEntry2: 2, UnitEntry4: 4, userNumber: 0,
}

func (d *Decoder) operand(instruction *Instruction, kind OperandKind, pos int) (value uint64, next int, err error) {
	switch kind {
	case SLEB:
		return d.sleb(pos)
	case ULEB, RegisterNum, TypeOffset:
		return d.uleb(pos)
	case EncodedPointer:
		return d.encodedPointer(byte(instruction.Operands[0]), pos)
	case Block, Block1, Expression:
		var n uint64
		next := pos + 1
		if kind != Block1 {
			n, next, err = d.uleb(pos)
		} else if pos < len(d.Expr) {
			n = uint64(d.Expr[pos])
		} else {
			err = fmt.Errorf("1 bytes expected, 0 are left")
		}
		if err != nil {
			return 0, 0, err
		}
		if left := len(d.Expr) - next; n > uint64(left) {
			return 0, 0, fmt.Errorf("block of %d bytes, %d are left", n, left)
		}
		end := next + int(n)
		instruction.Block = d.Expr[next:end:end]
		return n, end, nil
	}
	size := int(fixedSize[kind])
	switch kind {
	case Address:
		if size = d.AddressSize; size < 1 || size > 8 {
			return 0, 0, fmt.Errorf("address size %d, 1 to 8 expected", size)
		}
	case EntryOffset:
		switch d.OffsetSize {
		case 0, 4:
			size = 4
		case 8:
			size = 8
		default:
			return 0, 0, fmt.Errorf("offset size %d, 4 or 8 expected", d.OffsetSize)
		}
	}
	if left := len(d.Expr) - pos; size > left {
		return 0, 0, fmt.Errorf("%d bytes expected, %d are left", size, left)
	}
	value = loadUint(d.Expr[pos:pos+size], d.Order)
	if kind.isSigned() {
		value = signExtend(value, uint32(size)*8)
	}
	return value, pos + size, nil
}

// encodedPointer reads an address in a pointer encoding (LSB 10.5.1), without adding the base
// of the encoding.
func (d *Decoder) encodedPointer(encoding byte, pos int) (value uint64, next int, err error) {
	kind, err := encodedKind(encoding)
	if err != nil {
		return 0, 0, err
	}
	return d.operand(nil, kind, pos)
}

// encodedKind returns how a pointer encoding stores an address.
func encodedKind(encoding byte) (OperandKind, error) {
	if application := encoding & ehpe.ApplicationMask; encoding != ehpe.Omit && application <= ehpe.FuncRel {
		switch encoding & ehpe.FormatMask {
		case ehpe.AbsPtr:
			return Address, nil
		case ehpe.ULEB128:
			return ULEB, nil
		case ehpe.UData2:
			return Unsigned2, nil
		case ehpe.UData4:
			return Unsigned4, nil
		case ehpe.UData8:
			return Unsigned8, nil
		case ehpe.SLEB128:
			return SLEB, nil
		case ehpe.SData2:
			return Signed2, nil
		case ehpe.SData4:
			return Signed4, nil
		case ehpe.SData8:
			return Signed8, nil
		}
	}
	return NoOperand, fmt.Errorf("pointer encoding 0x%02x is not known", encoding)
}

// loadUint returns the unsigned integer in b, of 1 to 8 bytes.
func loadUint(b []byte, order ByteOrder) uint64 {
	switch {
	case len(b) == 8 && order == LittleEndian:
		return binary.LittleEndian.Uint64(b)
	case len(b) == 4 && order == LittleEndian:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	var v uint64
	for i := range b {
		if order == BigEndian {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	return v
}

// signExtend returns v with bit n-1 repeated above it, n from 1 to 64.
func signExtend(v uint64, n uint32) uint64 {
	shift := 64 - n
	return uint64(int64(v<<shift) >> shift)
}

// uleb reads an unsigned LEB128 of at most 64 significant bits (DWARF 5, 7.6).
// It may be padded.
func (d *Decoder) uleb(pos int) (value uint64, next int, err error) {
	if pos < len(d.Expr) && d.Expr[pos] < leb128.More {
		return uint64(d.Expr[pos]), pos + 1, nil
	}
	return leb128.Unsigned(d.Expr, pos)
}

// sleb reads a signed LEB128 of at most 64 significant bits (DWARF 5, 7.6). It
// may be padded.
func (d *Decoder) sleb(pos int) (value uint64, next int, err error) {
	v, next, err := leb128.Signed(d.Expr, pos)
	return uint64(v), next, err
}
