// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Format returns the text form of an expression in the 32-bit DWARF format,
// with numbers for registers. See FormatText.
func Format(expr []byte, d *Dialect, addressSize int, order ByteOrder) string {
	return formatText(expr, TextOptions{Dialect: d, AddressSize: addressSize, Order: order})
}

// FormatText returns the text form of an expression: "OP operand operand; OP ...". Operations
// have their full names, registers the names of o.Names that lead back to them, addresses and
// section offsets are 0x numbers, other integers decimal. A constant that the next operation
// takes as an address space has its name. A block is hex bytes, an expression within is "{
// OP; ... }" where it can be decoded, and without bytes either is "{}". Where bytes cannot be
// decoded the text ends in "<", the reason, the bytes in hex, and ">".
//
// Parse returns the same bytes where all of them could be decoded, their LEB128 numbers are
// as short as can be, and the dialect has no second encoding for an operation.
func FormatText(expr []byte, o TextOptions) string {
	if o.AddressSize == 0 {
		o.AddressSize = 8
	}
	return formatText(expr, o)
}

func formatText(expr []byte, o TextOptions) string {
	f := formatter{TextOptions: o}
	f.expression(expr, 0)
	return f.b.String()
}

type formatter struct {
	TextOptions
	b strings.Builder
}

func (f *formatter) decoder(expr []byte) Decoder {
	return Decoder{Expr: expr, Dialect: f.Dialect, AddressSize: f.AddressSize, OffsetSize: f.OffsetSize, Order: f.Order}
}

// expression writes the operations and reports whether all could be decoded.
func (f *formatter) expression(expr []byte, depth int) bool {
	dec := f.decoder(expr)
	for first := true; dec.More(); first = false {
		if !first {
			f.b.WriteString("; ")
		}
		var instruction Instruction
		if err := dec.Next(&instruction); err != nil {
			if instruction.Size == 0 {
				fmt.Fprintf(&f.b, "<%v: %x>", err, expr[dec.pos:])
				return false
			}
			// A branch out of the expression is ill-formed, and has a text.
			dec.pos += instruction.Size
		}
		f.b.WriteString(instruction.Op.Name)
		for i, kind := range instruction.Op.Operands {
			if kind == NoOperand {
				break
			}
			f.b.WriteByte(' ')
			if instruction.Op.pushesConstant() && isSpaceUser(dec) {
				if name, ok := f.spaceName(AddressSpace(instruction.Operands[i])); ok {
					f.b.WriteString(name)
					continue
				}
			}
			f.operand(&instruction, kind, instruction.Operands[i], depth)
		}
	}
	return true
}

// isSpaceUser reports whether the next operation takes the top of the stack as
// an address space.
func isSpaceUser(dec Decoder) bool {
	var instruction Instruction
	if dec.Next(&instruction) != nil {
		return false
	}
	switch instruction.Op.Name {
	case "DW_OP_LLVM_form_aspace_address", "DW_OP_LLVM_aspace_bregx", "DW_OP_LLVM_aspace_implicit_pointer":
		return true
	}
	return false
}

func (f *formatter) operand(instruction *Instruction, kind OperandKind, v uint64, depth int) {
	if kind == EncodedPointer {
		kind, _ = encodedKind(byte(instruction.Operands[0])) // decode read the operand by it
	}
	switch {
	case kind == Address, kind == EntryOffset, kind == UnitEntry2, kind == UnitEntry4, kind == TypeOffset:
		f.b.WriteString("0x" + strconv.FormatUint(v, 16))
	case kind == Block, kind == Block1, kind == Expression:
		f.block(instruction.Block, kind == Expression && depth < textNesting, depth)
	case kind == RegisterNum:
		f.b.WriteString(f.registerWord(v))
	case kind.isSigned():
		f.b.WriteString(strconv.FormatInt(int64(v), 10))
	default:
		f.b.WriteString(strconv.FormatUint(v, 10))
	}
}

// block writes a block, as operations where that is requested and possible.
func (f *formatter) block(content []byte, asOperations bool, depth int) {
	if len(content) == 0 {
		f.b.WriteString("{}")
		return
	}
	if asOperations {
		inner := formatter{TextOptions: f.TextOptions}
		if inner.expression(content, depth+1) {
			f.b.WriteString("{ " + inner.b.String() + " }")
			return
		}
	}
	f.b.WriteString(hex.EncodeToString(content))
}
