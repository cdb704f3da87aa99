// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
	"github.com/unwindd/unwindd/locexpr"
)

// Expression is a translated DIExpression, which computes a location from the values of a
// record, or of a global variable.
type Expression struct {
	// Bytes are in locexpr.Canonical. They are evaluated on a stack of the values, the last
	// one on top, and yield a location description. The operand of DW_OP_convert is for
	// symbol.IRType. In DW_OP_entry_value register N is value N on entry to the function.
	Bytes []byte
	// IsAddress is set where the result is the variable's place in memory; else it is an
	// implicit location with the variable's value.
	IsAddress bool
	// Fragment is the described part of the variable; nil: all of it.
	Fragment *Fragment
}

// Fragment is a part of a variable, in bits.
type Fragment struct{ Offset, Size uint64 }

// overlaps reports whether parts of a variable have bits in common; nil is all of it.
func (f *Fragment) overlaps(g *Fragment) bool {
	return f == nil || g == nil || f.Offset < g.Offset+g.Size && g.Offset < f.Offset+f.Size
}

// expressionOp is an operation of DIExpression that is also an operation of DWARF.
type expressionOp struct {
	name      string
	pop, push int // entries of the stack
	encoding  locexpr.Encoding
	operand   locexpr.OperandKind
}

// operands is the number of operands.
func (o *expressionOp) operands() int {
	if o.operand == locexpr.NoOperand {
		return 0
	}
	return 1
}

// expressionOps are the operations of a DIExpression that mean the same in DWARF.
var expressionOps = sync.OnceValue(func() map[string]*expressionOp {
	table := map[string]*expressionOp{}
	add := func(pop, push int, names ...string) {
		for _, name := range names {
			name = "DW_OP_" + name
			op, encoding, ok := locexpr.Canonical.Lookup(name)
			if ok {
				table[name] = &expressionOp{name, pop, push, encoding, op.Operands[0]}
			}
		}
	}
	add(0, 1, "constu", "consts", "const1u", "const1s", "const2u", "const2s", "const4u", "const4s", "const8u", "const8s", "push_object_address")
	for n := range 32 {
		add(0, 1, "lit"+strconv.Itoa(n))
	}
	add(1, 1, "plus_uconst", "deref", "deref_size", "neg", "not", "abs", "stack_value", "nop")
	add(2, 1, "plus", "minus", "mul", "div", "mod", "and", "or", "xor", "shl", "shr", "shra", "eq", "ne", "ge", "gt", "le", "lt", "xderef", "xderef_size")
	add(1, 2, "dup")
	add(2, 3, "over")
	add(2, 2, "swap")
	add(3, 3, "rot")
	add(1, 0, "drop")
	return table
})

// translator turns a DIExpression into operations.
type translator struct {
	fields       []Field
	pos          int
	values       int  // on the stack at the beginning
	depth        int  // of the stack now
	isAddress    bool // the value is the variable's address
	isTyped      bool // the top entry is of an integral base type
	out          []byte
	isStackValue bool // it ends in DW_OP_stack_value
	frag         *Fragment
}

// translate translates the expression of a record that has a number of values.
func translate(fields []Field, values int, address bool) (Expression, error) {
	if isTyped(fields) {
		return translateTyped(fields, values)
	}
	t := translator{fields: fields, values: values, depth: values, isAddress: address}
	if err := t.operations(); err != nil {
		return Expression{}, err
	}
	return Expression{t.out, t.isAddress && !t.isStackValue, t.frag}, nil
}

// word is the name of the operation at the current position; "" where there is none.
func (t *translator) word() string {
	if t.pos < len(t.fields) && t.fields[t.pos].Value.Kind == WordValue {
		return t.fields[t.pos].Value.Text
	}
	return ""
}

// hasNumber reports whether a number follows.
func (t *translator) hasNumber() bool {
	return t.pos < len(t.fields) && t.fields[t.pos].Value.Kind == NumberValue
}

func (t *translator) unsigned(op string) (uint64, error) {
	if t.hasNumber() {
		text := t.fields[t.pos].Value.Text
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil { // 64 bits of a negative number
			var signed int64
			signed, err = strconv.ParseInt(text, 10, 64)
			n = uint64(signed)
		}
		if err == nil {
			t.pos++
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s: a number is expected behind it", op)
}

func (t *translator) operations() error {
	for t.pos < len(t.fields) {
		op := t.word()
		if op == "" {
			return fmt.Errorf("an operation is expected, found %s", shorten([]byte(t.fields[t.pos].Value.String())))
		}
		t.pos++
		if t.frag != nil {
			return fmt.Errorf("%s behind a fragment, which ends an expression", op)
		}
		if t.isStackValue && op != "DW_OP_LLVM_fragment" && op != "DW_OP_bit_piece" && op != "DW_OP_piece" && op != "DW_OP_LLVM_tag_offset" {
			return fmt.Errorf("%s behind DW_OP_stack_value", op)
		}
		if err := t.operation(op); err != nil {
			return err
		}
	}
	return t.end()
}

func (t *translator) operation(op string) error {
	switch op {
	case "DW_OP_LLVM_arg":
		return t.argument()
	case "DW_OP_LLVM_entry_value":
		return t.entryValue(op)
	case "DW_OP_LLVM_convert":
		return t.convert()
	case "DW_OP_LLVM_fragment", "DW_OP_bit_piece", "DW_OP_piece":
		return t.fragment(op)
	case "DW_OP_LLVM_tag_offset": // it does not change the place of the variable
		_, err := t.unsigned(op)
		return err
	case "DW_OP_LLVM_extract_bits_sext", "DW_OP_LLVM_extract_bits_zext":
		return t.extractBits(op)
	}
	t.untype(op)
	if (op == "DW_OP_plus" || op == "DW_OP_minus") && t.hasNumber() { // until LLVM 5
		n, err := t.unsigned(op)
		if err != nil {
			return err
		}
		if err := t.need(op, 1); err != nil {
			return err
		}
		if op == "DW_OP_plus" {
			t.out = binary.AppendUvarint(append(t.out, dw.OpPlusUconst), n)
		} else {
			t.out = append(binary.AppendUvarint(append(t.out, dw.OpConstu), n), dw.OpMinus)
		}
		return nil
	}
	o := expressionOps()[op]
	if o == nil {
		return fmt.Errorf("%s has no equivalent", op)
	}
	if err := t.need(op, o.pop); err != nil {
		return err
	}
	if o.operand != locexpr.NoOperand {
		n, err := t.unsigned(op)
		if err != nil {
			return err
		}
		t.out, err = appendOperand(append(t.out, o.encoding.Opcode), o.operand, n)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	} else if op != "DW_OP_deref" || !t.isMemory(t.pos) {
		t.out = append(t.out, o.encoding.Opcode)
	} else {
		t.isAddress = true // the variable is in memory there, whatever its size
	}
	t.isStackValue = op == "DW_OP_stack_value"
	t.depth += o.push - o.pop
	return nil
}

// isMemory reports whether a DW_OP_deref followed by the operations from next on is the
// last one of a value, which then is in memory.
func (t *translator) isMemory(next int) bool {
	if t.isAddress {
		return false
	}
	if next == len(t.fields) {
		return true
	}
	switch t.fields[next].Value.Text {
	case "DW_OP_LLVM_fragment", "DW_OP_bit_piece", "DW_OP_piece":
		return true
	}
	return false
}

func (t *translator) need(op string, n int) error {
	if t.depth < n {
		return fmt.Errorf("%s needs %d values, %d are there", op, n, t.depth)
	}
	return nil
}

// appendOperand appends an operand of an operation.
func appendOperand(out []byte, kind locexpr.OperandKind, n uint64) ([]byte, error) {
	var bits int
	switch kind {
	case locexpr.ULEB:
		return binary.AppendUvarint(out, n), nil
	case locexpr.SLEB:
		return leb128.AppendSigned(out, int64(n)), nil
	case locexpr.Unsigned1, locexpr.Signed1:
		bits = 8
	case locexpr.Unsigned2, locexpr.Signed2:
		bits = 16
	case locexpr.Unsigned4, locexpr.Signed4:
		bits = 32
	case locexpr.Unsigned8, locexpr.Signed8:
		bits = 64
	default:
		return out, fmt.Errorf("an operand that no DIExpression has")
	}
	if high := int64(n) >> (bits - 1); bits < 64 && high != 0 && high != -1 && n>>bits != 0 {
		return out, fmt.Errorf("%d has more than %d bits", n, bits)
	}
	for i := 0; i < bits; i += 8 {
		out = append(out, byte(n>>i))
	}
	return out, nil
}

// argument pushes a copy of one of the values.
func (t *translator) argument() error {
	n, err := t.unsigned("DW_OP_LLVM_arg")
	if err != nil {
		return err
	}
	if n >= uint64(t.values) {
		return fmt.Errorf("DW_OP_LLVM_arg %d: there are %d values", n, t.values)
	}
	if t.word() == "DW_OP_LLVM_entry_value" {
		t.pos++
		return t.entry("DW_OP_LLVM_entry_value", n)
	}
	index := uint64(t.depth) - 1 - n
	if index > 0xff {
		return fmt.Errorf("DW_OP_LLVM_arg %d: below %d entries, at most 255 expected", n, index)
	}
	t.out = append(t.out, dw.OpPick, byte(index))
	t.depth++
	return nil
}

// entryValue replaces the value by its value on entry to the function.
func (t *translator) entryValue(op string) error {
	if t.pos != 1 || t.values != 1 {
		return fmt.Errorf("%s is expected at the beginning", op)
	}
	t.out = append(t.out, dw.OpDrop)
	t.depth--
	return t.entry(op, 0)
}

func (t *translator) entry(op string, value uint64) error {
	covered, err := t.unsigned(op)
	if err != nil {
		return err
	}
	if covered != 1 {
		return fmt.Errorf("%s %d: 1 operation expected", op, covered)
	}
	register := []byte{dw.OpReg0 + byte(value)}
	if value > 31 {
		register = binary.AppendUvarint([]byte{dw.OpRegx}, value)
	}
	t.out = append(append(t.out, dw.OpEntryValue, byte(len(register))), register...)
	t.depth++
	return nil
}

// convert converts the top entry.
func (t *translator) convert() error {
	const op = "DW_OP_LLVM_convert"
	bits, err := t.unsigned(op)
	if err != nil {
		return err
	}
	encoding := uint64(dw.ATEByName(t.word()))
	if encoding != 0 {
		t.pos++
	} else if encoding, err = t.unsigned(op); err != nil {
		return err
	}
	if bits == 0 || bits > symbol.MaxIRTypeBits || encoding == 0 || encoding > 0xff {
		return fmt.Errorf("%s %d: a type of 1 to %d bits is expected", op, bits, symbol.MaxIRTypeBits)
	}
	if err := t.need(op, 1); err != nil {
		return err
	}
	t.out = binary.AppendUvarint(append(t.out, dw.OpConvert), symbol.IRTypeOffset(uint32(bits), uint8(encoding)))
	t.isTyped = encoding != dw.ATEFloat
	return nil
}

// untype converts the top entry to the generic type: the operations of a DIExpression
// ignore types, DWARF's do not.
func (t *translator) untype(op string) {
	if t.isTyped && op != "DW_OP_stack_value" {
		t.out = append(t.out, dw.OpConvert, 0)
	}
	t.isTyped = false
}

// offsetAndSize returns the operands of an operation on a part.
func (t *translator) offsetAndSize(op string) (offset, size uint64, err error) {
	if offset, err = t.unsigned(op); err == nil {
		size, err = t.unsigned(op)
	}
	return offset, size, err
}

// fragment reads the described part of the variable.
func (t *translator) fragment(op string) error {
	offset, size, err := t.offsetAndSize(op)
	if err != nil {
		return err
	}
	const most = 1 << 40                                     // bits
	if op == "DW_OP_piece" && offset < most && size < most { // bytes
		offset, size = offset*8, size*8
	}
	if offset >= most || size >= most || size == 0 {
		return fmt.Errorf("%s %d %d: an offset and a size are expected", op, offset, size)
	}
	t.frag = &Fragment{offset, size}
	return nil
}

// extractBits extracts bits of a value, or of the variable's memory.
func (t *translator) extractBits(op string) error {
	offset, size, err := t.offsetAndSize(op)
	if err != nil {
		return err
	}
	if size == 0 || size > 64 || offset > 64 || offset+size > 64 {
		return fmt.Errorf("%s %d %d: bits of 64 are expected", op, offset, size)
	}
	if err := t.need(op, 1); err != nil {
		return err
	}
	t.untype(op)
	if t.isAddress {
		t.out = append(t.out, dw.OpDerefSize, byte((offset+size+7)/8))
		t.isAddress = false
	}
	if offset > 0 {
		t.out = append(binary.AppendUvarint(append(t.out, dw.OpConstu), offset), dw.OpShr)
	}
	if size < 64 {
		t.out = append(binary.AppendUvarint(append(t.out, dw.OpConstu), 1<<size-1), dw.OpAnd)
	}
	if sign := uint64(1) << (size - 1); op == "DW_OP_LLVM_extract_bits_sext" && size < 64 {
		// (v ^ sign) - sign extends the sign in a type of any size.
		t.out = append(binary.AppendUvarint(append(t.out, dw.OpConstu), sign), dw.OpXor)
		t.out = append(binary.AppendUvarint(append(t.out, dw.OpConstu), sign), dw.OpMinus)
	}
	return nil
}

// end turns the result into a location description.
func (t *translator) end() error {
	if t.depth == 0 {
		return fmt.Errorf("there is no value")
	}
	if !t.isAddress && !t.isStackValue {
		t.out = append(t.out, dw.OpStackValue)
	}
	if f := t.frag; f != nil {
		if f.Offset > 0 {
			// The bits before the part are not described.
			t.out = append(t.out, dw.OpLLVMUser, dw.UserUndefined, dw.OpBitPiece)
			t.out = append(binary.AppendUvarint(t.out, f.Offset), 0, dw.OpOver)
		}
		t.out = append(binary.AppendUvarint(append(t.out, dw.OpBitPiece), f.Size), 0)
	}
	return nil
}
