// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// ROCm's compilers describe variables by operations of their own (AMDGPU LLVM Extensions
// for Heterogeneous Debugging, "DIExpr"): typed ones, on a stack of location descriptions.
// They are in a DIExpression, and in older releases in a DIExpr.

// objectKind is how an entry of that stack is represented on the stack of DWARF.
type objectKind uint8

const (
	valueObject     objectKind = iota // the value itself
	memoryObject                      // the address of memory that has it
	undefinedObject                   // an undefined location
	vectorObject                      // a composite location
)

// object is an entry of the stack.
type object struct {
	kind  objectKind
	typ   string // of LLVM
	space uint64 // of a memoryObject
	// isRecordValue is set for a memoryObject whose address is a value of the record, whose
	// type has the address space.
	isRecordValue bool
	constant      uint64 // of a value
	isConstant    bool
	target        *object // the object that DIOpAddrOf took the address of
}

// typedTranslator turns such operations into operations of DWARF.
type typedTranslator struct {
	values int
	stack  []object
	out    []byte
	frag   *Fragment
}

// isTyped reports whether the operations of an expression are ROCm's.
func isTyped(fields []Field) bool {
	return len(fields) > 0 && strings.HasPrefix(fields[0].Value.Text, "DIOp")
}

// translateTyped translates the expression of a record that has a number of values.
func translateTyped(fields []Field, values int) (Expression, error) {
	t := typedTranslator{values: values}
	for i := range fields {
		text := fields[i].Value.Text
		name, rest, ok := strings.Cut(text, "(")
		if !ok || !strings.HasSuffix(rest, ")") || !strings.HasPrefix(name, "DIOp") {
			return Expression{}, fmt.Errorf("an operation is expected, found %s", shorten([]byte(text)))
		}
		if t.frag != nil {
			return Expression{}, fmt.Errorf("%s behind a fragment, which ends an expression", name)
		}
		if err := t.operation(name, splitArguments(rest[:len(rest)-1])); err != nil {
			return Expression{}, fmt.Errorf("%s: %w", name, err)
		}
		if len(t.stack) > maxTyped || len(t.out) > maxTypedBytes {
			return Expression{}, fmt.Errorf("more than %d entries or %d bytes", maxTyped, maxTypedBytes)
		}
	}
	return t.end()
}

// Bounds on the stack and on the output.
const (
	maxTyped      = 200
	maxTypedBytes = 1 << 16
)

// splitArguments splits arguments at the commas outside brackets.
func splitArguments(text string) (list []string) {
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(text[start:]); last != "" {
		list = append(list, last)
	}
	return list
}

// typedOp is an operation: the number of its arguments, how many entries it pops, and its
// effect on them, the top last.
type typedOp struct {
	arguments, pop int
	do             func(t *typedTranslator, arguments []string, inputs []object) error
}

// typedOps are the operations by their names.
var typedOps = map[string]typedOp{
	"DIOpReferrer":    {1, 0, (*typedTranslator).referrer},
	"DIOpArg":         {2, 0, (*typedTranslator).argument},
	"DIOpTypeObject":  {1, 0, (*typedTranslator).typeObject},
	"DIOpConstant":    {1, 0, (*typedTranslator).constant},
	"DIOpPoisoned":    {1, 0, (*typedTranslator).poisoned},
	"DIOpPushLane":    {1, 0, (*typedTranslator).pushLane},
	"DIOpConvert":     {1, 1, (*typedTranslator).convert},
	"DIOpZExt":        {1, 1, (*typedTranslator).convert},
	"DIOpSExt":        {1, 1, (*typedTranslator).extendSign},
	"DIOpReinterpret": {1, 1, (*typedTranslator).reinterpret},
	"DIOpBitOffset":   {1, 2, (*typedTranslator).bitOffset},
	"DIOpByteOffset":  {1, 2, (*typedTranslator).byteOffset},
	"DIOpAddrOf":      {1, 1, (*typedTranslator).addressOf},
	"DIOpDeref":       {1, 1, (*typedTranslator).deref},
	"DIOpRead":        {0, 1, (*typedTranslator).readTop},
	"DIOpExtend":      {1, 1, (*typedTranslator).extend},
	"DIOpSelect":      {0, 3, (*typedTranslator).selectParts},
	"DIOpComposite":   {2, 0, (*typedTranslator).composite},
	"DIOpFragment":    {2, 0, (*typedTranslator).fragment},
	"DIOpAdd":         binaryOp("DW_OP_plus", false, false),
	"DIOpSub":         binaryOp("DW_OP_minus", false, false),
	"DIOpMul":         binaryOp("DW_OP_mul", false, false),
	"DIOpDiv":         binaryOp("DW_OP_div", true, true),
	"DIOpMod":         binaryOp("DW_OP_mod", true, false),
	"DIOpShl":         binaryOp("DW_OP_shl", false, false),
	"DIOpShr":         binaryOp("DW_OP_shr", true, false),
	"DIOpLShr":        binaryOp("DW_OP_shr", true, false),
	"DIOpAShr":        binaryOp("DW_OP_shra", true, true),
	"DIOpAnd":         binaryOp("DW_OP_and", false, false),
	"DIOpOr":          binaryOp("DW_OP_or", false, false),
	"DIOpXor":         binaryOp("DW_OP_xor", false, false),
}

// operation translates one operation.
func (t *typedTranslator) operation(name string, arguments []string) error {
	o, ok := typedOps[name]
	switch {
	case !ok:
		return errors.New("it has no equivalent")
	case len(arguments) != o.arguments:
		return fmt.Errorf("%d arguments, expected %d", len(arguments), o.arguments)
	case len(t.stack) < o.pop:
		return fmt.Errorf("it needs %d entries, %d are there", o.pop, len(t.stack))
	}
	inputs := slices.Clone(t.stack[len(t.stack)-o.pop:])
	for i := range inputs {
		isVector := inputs[i].kind == vectorObject && name != "DIOpSelect"
		isPointer := inputs[i].target != nil && name != "DIOpDeref"
		if isVector || isPointer || inputs[i].kind == undefinedObject {
			return errors.New("it has no equivalent for what is not in memory and no value")
		}
	}
	t.stack = t.stack[:len(t.stack)-o.pop]
	return o.do(t, arguments, inputs)
}

func (t *typedTranslator) push(o object) error {
	t.stack = append(t.stack, o)
	return nil
}

// emit writes an operation of DWARF.
func (t *typedTranslator) emit(name string, operands ...uint64) {
	op, e, ok := locexpr.Canonical.Lookup(name)
	if !ok {
		return
	}
	t.out = append(t.out, e.Opcode)
	if e.User != 0 {
		t.out = binary.AppendUvarint(t.out, e.User)
	}
	for i, n := range operands {
		t.out, _ = appendOperand(t.out, op.Operands[i], n)
	}
}

// read turns the top entry of DWARF's stack, which represents an object, into the object's
// value.
func (t *typedTranslator) read(o object) (object, error) {
	bits := typeBits(o.typ)
	if o.kind == valueObject {
		return o, nil
	}
	if bits == 0 || bits > 64 {
		return o, fmt.Errorf("a value of type %s", o.typ)
	}
	t.locate(o)
	t.emit("DW_OP_deref_size", (bits+7)/8)
	return object{typ: o.typ}, nil
}

// locate adds its address space to an address.
func (t *typedTranslator) locate(o object) {
	if o.space != 0 {
		t.emit("DW_OP_constu", o.space)
		t.emit("DW_OP_LLVM_form_aspace_address")
	}
}

// truncate reduces the top entry to a number of bits, and extends the sign.
func (t *typedTranslator) truncate(bits uint64, isSigned bool) {
	if bits == 0 || bits >= 64 {
		return
	}
	t.emit("DW_OP_constu", 1<<bits-1)
	t.emit("DW_OP_and")
	if isSigned { // (v ^ sign) - sign
		t.emit("DW_OP_constu", 1<<(bits-1))
		t.emit("DW_OP_xor")
		t.emit("DW_OP_constu", 1<<(bits-1))
		t.emit("DW_OP_minus")
	}
}

func (t *typedTranslator) referrer(arguments []string, _ []object) error {
	return t.pick(0, arguments[0])
}

func (t *typedTranslator) argument(arguments []string, _ []object) error {
	n, err := strconv.ParseUint(arguments[0], 10, 32)
	if err != nil || n >= uint64(t.values) { //nolint:gosec // not negative
		return fmt.Errorf("argument %s: there are %d values", arguments[0], t.values)
	}
	return t.pick(n, arguments[1])
}

// pick pushes a copy of one of the values.
func (t *typedTranslator) pick(n uint64, typ string) error {
	if t.values == 0 {
		return errors.New("there are no values")
	}
	index := uint64(t.values+len(t.stack)) - 1 - n //nolint:gosec // small
	if index > 0xff {
		return fmt.Errorf("a value below %d entries, at most 255 expected", index)
	}
	t.emit("DW_OP_pick", index)
	return t.push(object{typ: typ})
}

func (t *typedTranslator) typeObject(arguments []string, _ []object) error {
	t.emit("DW_OP_push_object_address")
	return t.push(object{kind: memoryObject, typ: arguments[0]})
}

func (t *typedTranslator) poisoned(arguments []string, _ []object) error {
	t.emit("DW_OP_LLVM_undefined")
	return t.push(object{kind: undefinedObject, typ: arguments[0]})
}

func (t *typedTranslator) constant(arguments []string, inputs []object) error {
	typ, text := splitTyped(arguments[0])
	var n int64
	switch text {
	case "undef", "poison":
		return t.poisoned([]string{typ}, inputs)
	case "null", "false", "zeroinitializer":
	case "true":
		n = 1
	default:
		v := Value{Kind: NumberValue, Text: text}
		var ok bool
		if n, ok = v.Int(); !ok || !isIntegerType(typ) {
			return fmt.Errorf("a constant %s", shorten([]byte(arguments[0])))
		}
	}
	if typeBits(typ) > 64 {
		return fmt.Errorf("a constant of type %s", typ)
	}
	if n < 0 {
		t.emit("DW_OP_consts", uint64(n))
	} else {
		t.emit("DW_OP_constu", uint64(n))
	}
	return t.push(object{typ: typ, constant: uint64(n), isConstant: true})
}

func (t *typedTranslator) pushLane(arguments []string, _ []object) error {
	t.emit("DW_OP_LLVM_push_lane")
	return t.push(object{typ: arguments[0]})
}

// convert resizes an integer without sign.
func (t *typedTranslator) convert(arguments []string, inputs []object) error {
	return t.resize(arguments[0], inputs[0], false)
}

func (t *typedTranslator) extendSign(arguments []string, inputs []object) error {
	return t.resize(arguments[0], inputs[0], true)
}

func (t *typedTranslator) resize(typ string, o object, isSigned bool) error {
	if !isIntegerType(typ) || !isIntegerType(o.typ) || typeBits(typ) > 64 {
		return fmt.Errorf("from %s to %s: only integers of at most 64 bits are converted", o.typ, typ)
	}
	o, err := t.read(o)
	if err != nil {
		return err
	}
	from, to := typeBits(o.typ), typeBits(typ)
	t.truncate(min(from, to), isSigned && to > from)
	return t.push(object{typ: typ})
}

func (t *typedTranslator) reinterpret(arguments []string, inputs []object) error {
	from, to := typeBits(inputs[0].typ), typeBits(arguments[0])
	if from != to && from != 0 && to != 0 {
		return fmt.Errorf("from %s to %s, which has another size", inputs[0].typ, arguments[0])
	}
	inputs[0].typ = arguments[0]
	return t.push(inputs[0])
}

func (t *typedTranslator) bitOffset(arguments []string, inputs []object) error {
	return t.offset(arguments[0], inputs, 1)
}

func (t *typedTranslator) byteOffset(arguments []string, inputs []object) error {
	return t.offset(arguments[0], inputs, 8)
}

// offset moves the entry below the top by the top entry's number of units; unit is in bits.
func (t *typedTranslator) offset(typ string, inputs []object, unit uint64) error {
	count, err := t.read(inputs[1])
	if err != nil {
		return err
	}
	if unit == 1 && count.isConstant && count.constant%8 == 0 || unit == 8 {
		if inputs[0].kind == memoryObject {
			if unit == 1 {
				t.emit("DW_OP_constu", 8)
				t.emit("DW_OP_div")
			}
			t.emit("DW_OP_plus")
			inputs[0].typ, inputs[0].isRecordValue = typ, false
			return t.push(inputs[0])
		}
	}
	if !count.isConstant || inputs[0].kind != valueObject || typeBits(typ) == 0 || count.constant*unit+typeBits(typ) > min(typeBits(inputs[0].typ), 64) || count.constant > 64 {
		return fmt.Errorf("by %d bits into %s: only bytes of memory, and constants within a value of at most 64 bits", count.constant*unit, inputs[0].typ)
	}
	if unit == 8 {
		t.emit("DW_OP_constu", 8)
		t.emit("DW_OP_mul")
	}
	t.emit("DW_OP_shr")
	return t.push(object{typ: typ})
}

func (t *typedTranslator) addressOf(arguments []string, inputs []object) error {
	return t.push(object{typ: "ptr addrspace(" + arguments[0] + ")", target: &inputs[0]})
}

func (t *typedTranslator) deref(arguments []string, inputs []object) error {
	if target := inputs[0].target; target != nil {
		target.typ = arguments[0]
		return t.push(*target)
	}
	space, ok := pointerSpace(inputs[0].typ)
	if !ok {
		return fmt.Errorf("a value of type %s, expected a pointer", inputs[0].typ)
	}
	// A value of the record is on the stack unchanged, and nothing was done with it.
	isRecordValue := t.values == 1 && inputs[0].kind == valueObject && len(t.stack) == 0 && len(t.out) == 2 && t.out[0] == dw.OpPick
	if _, err := t.read(inputs[0]); err != nil {
		return err
	}
	return t.push(object{kind: memoryObject, typ: arguments[0], space: space, isRecordValue: isRecordValue})
}

func (t *typedTranslator) readTop(_ []string, inputs []object) error {
	o, err := t.read(inputs[0])
	if err != nil {
		return err
	}
	return t.push(o)
}

// binaryOp is an operation on two values of one type. An operation that depends on the
// upper bits gets them extended with zero, or with the sign.
func binaryOp(name string, isExact, isSigned bool) typedOp {
	return typedOp{0, 2, func(t *typedTranslator, _ []string, inputs []object) error {
		if !isIntegerType(inputs[0].typ) && !strings.HasPrefix(inputs[0].typ, "ptr") || typeBits(inputs[0].typ) > 64 {
			return fmt.Errorf("of type %s: only integers of at most 64 bits", inputs[0].typ)
		}
		below := inputs[0].kind == memoryObject || isExact && typeBits(inputs[0].typ) < 64
		for _, i := range []int{1, 0} {
			if i == 0 && below {
				t.emit("DW_OP_swap")
			}
			if _, err := t.read(inputs[i]); err != nil {
				return err
			}
			if isExact && (i == 1 || below) {
				t.truncate(typeBits(inputs[i].typ), isSigned)
			}
		}
		if below {
			t.emit("DW_OP_swap")
		}
		t.emit(name)
		return t.push(object{typ: inputs[0].typ})
	}}
}

// part turns the top entry, which represents an object, into a location of its own.
func (t *typedTranslator) part(o object) error {
	switch {
	case o.target != nil:
		return errors.New("a pointer to what is in no memory has no equivalent")
	case o.kind == valueObject:
		t.emit("DW_OP_stack_value")
	case o.kind == memoryObject:
		t.locate(o)
	}
	return nil
}

func (t *typedTranslator) extend(arguments []string, inputs []object) error {
	n, err := strconv.ParseUint(arguments[0], 10, 16)
	bits := typeBits(inputs[0].typ)
	if err != nil || n == 0 || bits == 0 {
		return fmt.Errorf("%s times a %s", arguments[0], inputs[0].typ)
	}
	if err := t.part(inputs[0]); err != nil {
		return err
	}
	t.emit("DW_OP_LLVM_extend", bits, n)
	return t.push(object{kind: vectorObject, typ: fmt.Sprintf("<%d x %s>", n, inputs[0].typ)})
}

func (t *typedTranslator) selectParts(_ []string, inputs []object) error {
	count, element, ok := vectorType(inputs[0].typ)
	bits := typeBits(element)
	if inputs[0].kind != vectorObject || inputs[1].kind != vectorObject || inputs[0].typ != inputs[1].typ || !ok || bits == 0 || inputs[2].kind == vectorObject {
		return fmt.Errorf("of %s and %s: two vectors of one type are expected below a mask", inputs[0].typ, inputs[1].typ)
	}
	if _, err := t.read(inputs[2]); err != nil {
		return err
	}
	t.emit("DW_OP_LLVM_select_bit_piece", bits, count)
	return t.push(object{kind: vectorObject, typ: inputs[0].typ})
}

// composite joins entries, the deepest one first. They stay below it, the last one.
func (t *typedTranslator) composite(arguments []string, _ []object) error {
	n, err := strconv.Atoi(arguments[0])
	if err != nil || n <= 0 || n != len(t.stack) {
		return fmt.Errorf("of %s entries: all %d are expected", arguments[0], len(t.stack))
	}
	sum := uint64(0)
	for i, o := range t.stack {
		bits := typeBits(o.typ)
		if bits == 0 {
			return fmt.Errorf("a part of type %s, whose size is not known", o.typ)
		}
		sum += bits
		above := uint64(n - 1) //nolint:gosec // positive
		if i > 0 {
			above++ // the parts before it
		}
		t.emit("DW_OP_pick", above-uint64(i)) //nolint:gosec // less than n
		if err := t.part(o); err != nil {
			return err
		}
		t.emit("DW_OP_bit_piece", bits, 0)
	}
	if all := typeBits(arguments[1]); all != 0 && all != sum {
		return fmt.Errorf("parts of %d bits, expected %d of %s", sum, all, arguments[1])
	}
	t.emit("DW_OP_LLVM_piece_end")
	t.stack = []object{{kind: vectorObject, typ: arguments[1]}}
	return nil
}

func (t *typedTranslator) fragment(arguments []string, _ []object) error {
	var f Fragment
	var err error
	if f.Offset, err = strconv.ParseUint(arguments[0], 10, 40); err == nil {
		f.Size, err = strconv.ParseUint(arguments[1], 10, 40)
	}
	if err != nil || f.Size == 0 {
		return fmt.Errorf("%s, %s: an offset and a size are expected", arguments[0], arguments[1])
	}
	t.frag = &f
	return nil
}

// end turns the only entry into a location description.
func (t *typedTranslator) end() (Expression, error) {
	if len(t.stack) != 1 {
		return Expression{}, fmt.Errorf("%d entries are left, expected one", len(t.stack))
	}
	o := t.stack[0]
	e := Expression{IsAddress: o.kind == memoryObject, Fragment: t.frag}
	if len(t.out) == 2 && t.out[0] == dw.OpPick && t.values == 1 {
		t.out = nil // the value is on the stack
	}
	if !o.isRecordValue {
		if err := t.part(o); err != nil {
			return e, err
		}
	}
	if f := t.frag; f != nil {
		// Continue as a translator that has written the location.
		last := translator{out: t.out, isStackValue: true, depth: 1, frag: f}
		if err := last.end(); err != nil {
			return e, err
		}
		t.out = last.out
	}
	e.Bytes = t.out
	return e, nil
}

func isIntegerType(typ string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(typ, "i"), 10, 24)
	return err == nil && strings.HasPrefix(typ, "i")
}

// pointerSpace is the address space of a type of pointers.
func pointerSpace(typ string) (space uint64, ok bool) {
	if !strings.HasPrefix(typ, "ptr") && !strings.HasSuffix(typ, "*") {
		return 0, false
	}
	if index := strings.LastIndex(typ, "addrspace("); index >= 0 {
		text, _, _ := strings.Cut(typ[index+len("addrspace("):], ")")
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 24)
		return n, err == nil
	}
	return 0, true
}

// vectorType splits a type of vectors or arrays.
func vectorType(typ string) (count uint64, element string, ok bool) {
	if len(typ) < 2 || typ[0] != '<' && typ[0] != '[' {
		return 0, "", false
	}
	text, element, ok := strings.Cut(typ[1:len(typ)-1], " x ")
	count, err := strconv.ParseUint(strings.TrimSpace(text), 10, 24)
	return count, strings.TrimSpace(element), ok && err == nil
}

// maxTypeText bounds the text of a type, and so the nesting of arrays.
const maxTypeText = 1 << 10

var floatBits = map[string]uint64{"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ppc_fp128": 128}

// typeBits is the size of a type of LLVM in bits; 0 where it is unknown. Pointers to local
// and private memory of AMD's processors have 32.
func typeBits(typ string) uint64 {
	if len(typ) > maxTypeText {
		return 0
	}
	if n, isInt := strings.CutPrefix(typ, "i"); isInt {
		bits, err := strconv.ParseUint(n, 10, 24)
		if err == nil && bits <= symbol.MaxIRTypeBits {
			return bits
		}
		return 0
	}
	if space, ok := pointerSpace(typ); ok {
		if space == 2 || space == 3 || space == 5 || space == 6 {
			return 32
		}
		return 64
	}
	if count, element, ok := vectorType(typ); ok && count < 1<<20 && element != typ {
		return count * typeBits(element)
	}
	return floatBits[typ]
}
