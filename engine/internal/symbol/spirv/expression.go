// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/locexpr"
)

// opKind is how an operation is translated to locexpr.
type opKind uint8

const (
	direct   opKind = iota // to the DW_OP_ of its text
	fragment               // the offset and the size in bits of the described part of the variable
	convert                // the size in bits and the encoding of the type
	ignored                // it does not change the place or value of the variable
	refused                // it needs data that a module does not have
)

// operation is a Debug Operation (DebugInfo, 3.6).
type operation struct {
	name     string
	text     string // the operation of locexpr; "": DW_OP_ and name
	operands int
	isSigned bool // of the last operand
	how      opKind
}

// operations are by number. DebugInfo ends with Constu, OpenCL.DebugInfo.100 and
// NonSemantic.Shader.DebugInfo.100 with Fragment; the rest are the LLVM/SPIR-V
// translator's.
var operations = sync.OnceValue(func() []operation {
	list := []operation{
		{"Deref", "deref", 0, false, direct},
		{"Plus", "plus", 0, false, direct},
		{"Minus", "minus", 0, false, direct},
		{"PlusUconst", "plus_uconst", 1, false, direct},
		{"BitPiece", "bit_piece", 2, false, direct},
		{"Swap", "swap", 0, false, direct},
		{"Xderef", "xderef", 0, false, direct},
		{"StackValue", "stack_value", 0, false, direct},
		{"Constu", "constu", 1, false, direct},
		{"Fragment", "", 2, false, fragment},
		{"Convert", "", 2, false, convert},
		{"Addr", "addr", 1, false, direct},
		{"Const1u", "const1u", 1, false, direct},
		{"Const1s", "const1s", 1, true, direct},
		{"Const2u", "const2u", 1, false, direct},
		{"Const2s", "const2s", 1, true, direct},
		{"Const4u", "const4u", 1, false, direct},
		{"Const4s", "const4s", 1, true, direct},
		{"Const8u", "const8u", 1, false, direct},
		{"Const8s", "const8s", 1, true, direct},
		{"Consts", "consts", 1, true, direct},
		{"Dup", "dup", 0, false, direct},
		{"Drop", "drop", 0, false, direct},
		{"Over", "over", 0, false, direct},
		{"Pick", "pick", 1, false, direct},
		{"Rot", "rot", 0, false, direct},
		{"Abs", "abs", 0, false, direct},
		{"And", "and", 0, false, direct},
		{"Div", "div", 0, false, direct},
		{"Mod", "mod", 0, false, direct},
		{"Mul", "mul", 0, false, direct},
		{"Neg", "neg", 0, false, direct},
		{"Not", "not", 0, false, direct},
		{"Or", "or", 0, false, direct},
		{"Shl", "shl", 0, false, direct},
		{"Shr", "shr", 0, false, direct},
		{"Shra", "shra", 0, false, direct},
		{"Xor", "xor", 0, false, direct},
		{"Bra", "", 1, true, refused},
		{"Eq", "eq", 0, false, direct},
		{"Ge", "ge", 0, false, direct},
		{"Gt", "gt", 0, false, direct},
		{"Le", "le", 0, false, direct},
		{"Lt", "lt", 0, false, direct},
		{"Ne", "ne", 0, false, direct},
		{"Skip", "", 1, true, refused},
	}
	for n := range 32 {
		list = append(list, operation{fmt.Sprintf("Lit%d", n), fmt.Sprintf("lit%d", n), 0, false, direct})
	}
	for n := range 32 {
		list = append(list, operation{fmt.Sprintf("Reg%d", n), fmt.Sprintf("reg%d", n), 0, false, direct})
	}
	for n := range 32 {
		list = append(list, operation{fmt.Sprintf("Breg%d", n), fmt.Sprintf("breg%d", n), 1, true, direct})
	}
	return append(list,
		operation{"Regx", "regx", 1, false, direct},
		operation{"Fbreg", "fbreg", 1, true, direct},
		operation{"Bregx", "bregx", 2, true, direct},
		operation{"Piece", "piece", 1, false, direct},
		operation{"DerefSize", "deref_size", 1, false, direct},
		operation{"XderefSize", "xderef_size", 1, false, direct},
		operation{"Nop", "nop", 0, false, direct},
		operation{"PushObjectAddress", "push_object_address", 0, false, direct},
		operation{"Call2", "", 1, false, refused},
		operation{"Call4", "", 1, false, refused},
		operation{"CallRef", "", 1, false, refused},
		operation{"FormTlsAddress", "form_tls_address", 0, false, direct},
		operation{"CallFrameCfa", "call_frame_cfa", 0, false, direct},
		operation{"ImplicitValue", "", 2, false, refused},
		operation{"ImplicitPointer", "", 2, false, refused},
		operation{"Addrx", "", 1, false, refused},
		operation{"Constx", "", 1, false, refused},
		operation{"EntryValue", "", 2, false, refused},
		operation{"ConstTypeOp", "", 3, false, refused},
		operation{"RegvalType", "", 2, false, refused},
		operation{"DerefType", "", 2, false, refused},
		operation{"XderefType", "", 2, false, refused},
		operation{"Reinterpret", "", 1, false, refused},
		operation{"LLVMArg", "", 1, false, refused},
		operation{"ImplicitPointerTag", "", 1, false, refused},
		operation{"TagOffset", "", 1, false, ignored},
	)
})

// maxOperations bounds the operations of an expression.
const maxOperations = 1 << 12

// fragmentRange is the part of a variable that an expression describes, in bits.
type fragmentRange struct {
	offset, size uint64
	isPart       bool // false: the expression describes all of the variable
}

// Expression translates a DebugExpression to locexpr.Canonical. The result expects its
// argument on the stack: the variable's address if address is true, else its value. It
// yields a location description, which is in memory if memory is true: an expression that
// yields a value ends in DW_OP_stack_value, and an expression on a value that ends in
// DW_OP_deref means that the variable is in memory there. An expression of a part of a
// variable yields a composite, whose other bits are undefined.
func (m *Module) Expression(r *Record, address bool) (bytes []byte, memory bool, err error) {
	e, err := m.expression(r, address)
	return e.bytes, e.isInMemory, err
}

// expression is a translated DebugExpression.
type expression struct {
	bytes      []byte
	part       fragmentRange
	isInMemory bool
}

func (m *Module) expression(r *Record, address bool) (e expression, err error) {
	if r.Op != DebugExpression {
		return e, fmt.Errorf("%%%d is %s, expected DebugExpression", r.ID, r.name())
	}
	ids := r.rest("Operations")
	if len(ids) > maxOperations {
		return e, fmt.Errorf("DebugExpression %%%d of %d operations, expected at most %d", r.ID, len(ids), maxOperations)
	}
	var text []string
	for _, id := range ids {
		o := m.find(id)
		if o == nil || o.Op != DebugOperation {
			return e, fmt.Errorf("DebugExpression %%%d: %%%d, expected DebugOperation", r.ID, id)
		}
		if e.part.isPart {
			return e, fmt.Errorf("DebugExpression %%%d: DebugOperation %%%d follows a Fragment, which ends an expression", r.ID, id)
		}
		word, err := m.operationText(o, &e.part)
		if err != nil {
			return e, fmt.Errorf("DebugOperation %%%d: %w", id, err)
		}
		if word != "" {
			text = append(text, word)
		}
	}
	text, e.isInMemory = located(text, address)
	if e.part.isPart {
		if e.part.offset > 0 {
			// The undefined part in front comes first; the described part is below it.
			text = append(text, fmt.Sprintf("LLVM_undefined; bit_piece %d 0; over", e.part.offset))
		}
		text = append(text, fmt.Sprintf("bit_piece %d 0", e.part.size))
	}
	e.bytes, err = locexpr.Parse(strings.Join(text, "; "), locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		return e, fmt.Errorf("DebugExpression %%%d: %w", r.ID, err)
	}
	return e, nil
}

// located turns operations on an address, or a value, into a location description, and
// reports whether that is memory.
func located(text []string, address bool) (out []string, memory bool) {
	end := len(text)
	if end > 0 && (strings.HasPrefix(text[end-1], "piece") || strings.HasPrefix(text[end-1], "bit_piece")) {
		end-- // the described part comes before
	}
	last := ""
	if end > 0 {
		last = text[end-1]
	}
	switch {
	case last == "stack_value", strings.HasPrefix(last, "reg"):
		return text, false
	case address:
		return text, true
	case last == "deref":
		return slices.Delete(text, end-1, end), true
	}
	return slices.Insert(text, end, "stack_value"), false
}

var errNotInModule = errors.New("it refers to what a module does not have")

// operationText is a DebugOperation in the text form of locexpr.
func (m *Module) operationText(r *Record, part *fragmentRange) (string, error) {
	code, ok := m.number(r, "OpCode")
	operations := operations()
	if !ok || code >= uint64(len(operations)) {
		return "", fmt.Errorf("operation %d, expected 0 to %d", code, len(operations)-1)
	}
	o := &operations[code]
	words := r.rest("Operands")
	if len(words) != o.operands {
		return "", fmt.Errorf("%s with %d operands, expected %d", o.name, len(words), o.operands)
	}
	numbers := make([]uint64, len(words))
	for i, w := range words {
		if numbers[i], ok = m.numberOf(r.Set, w); !ok {
			return "", fmt.Errorf("%s: operand %d is %%%d, expected a constant", o.name, i+1, w)
		}
	}
	switch o.how {
	case fragment:
		*part = fragmentRange{numbers[0], numbers[1], true}
		return "", nil
	case convert:
		e, ok := r.Set.encodings[uint32(numbers[1])]
		if !ok || e.ate == 0 || numbers[1]>>32 != 0 || numbers[0] == 0 || numbers[0] > symbol.MaxIRTypeBits {
			return "", fmt.Errorf("Convert to %d bits of encoding %d, expected a base type", numbers[0], numbers[1])
		}
		return fmt.Sprintf("convert %d", symbol.IRTypeOffset(uint32(numbers[0]), e.ate)), nil
	case ignored:
		return "", nil
	case refused:
		return "", fmt.Errorf("%s: %w", o.name, errNotInModule)
	}
	text := o.text
	for i, n := range numbers {
		if o.isSigned && i == len(numbers)-1 {
			text += fmt.Sprintf(" %d", int32(uint32(n)))
		} else {
			text += fmt.Sprintf(" %d", n)
		}
	}
	return text, nil
}
