// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"strings"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// This file reads the expressions of the forms before LLVM 3.7: DW_TAG_expression, whose
// operations are numbers (the document's "Complex Expressions"), and before that the last
// members of a local variable.

// operationNames are the operations of a DIExpression by their numbers in DWARF, with their
// numbers of operands.
var operationNames = sync.OnceValue(func() map[uint64]oldOperation {
	names := map[uint64]oldOperation{
		dw.OpPiece:    {"DW_OP_piece", 2}, // an offset and a size in bytes
		dw.OpBitPiece: {"DW_OP_bit_piece", 2},
	}
	for name, op := range expressionOps() {
		names[uint64(op.encoding.Opcode)] = oldOperation{name, op.operands()}
	}
	// The operand is added to these.
	for _, name := range []string{"DW_OP_plus", "DW_OP_minus"} {
		names[uint64(expressionOps()[name].encoding.Opcode)] = oldOperation{name, 1}
	}
	return names
})

// oldOperation is an operation that is written as a number.
type oldOperation struct {
	name     string
	operands int
}

// addressOperations are the operations that LLVM until 3.5 wrote as further members of a
// local variable, by their numbers.
var addressOperations = map[uint64]oldOperation{1: {"DW_OP_plus", 1}, 2: {"DW_OP_deref", 0}}

// describeExpression turns the node into a DIExpression of numbers.
func (n *Node) describeExpression(numbers []Field) {
	n.Kind = "DIExpression"
	n.Fields, _ = operationsOf(numbers, operationNames())
}

// operationsOf names operations that are written as numbers. A number that is no operation
// is kept. whole is set where every number is an operation, and no operand is missing.
func operationsOf(numbers []Field, names map[uint64]oldOperation) (fields []Field, whole bool) {
	whole = true
	for i := 0; i < len(numbers); i++ {
		number, isNumber := numbers[i].Value.Int()
		op, ok := names[uint64(number)]
		if !ok || !isNumber {
			fields, whole = append(fields, Field{Value: plainNumber(numbers[i].Value)}), false
			continue
		}
		fields = append(fields, Field{Value: Value{Kind: WordValue, Text: op.name}})
		for range op.operands {
			if i++; i >= len(numbers) {
				return fields, false
			}
			fields = append(fields, Field{Value: plainNumber(numbers[i].Value)})
		}
	}
	return fields, whole
}

// describeAddress reads the last members of a local variable, which clang wrote for
// captures of blocks: how its address is computed from the record's. They are 64-bit
// numbers; in LLVM 3.5 they are in a tuple. Others may have been appended.
func (n *Node) describeAddress(count int) {
	known := n.Fields[: len(n.Fields)-count : len(n.Fields)-count]
	appended := n.Fields[len(n.Fields)-count:]
	if v := appended[0].Value; v.Kind == RefValue || v.Kind == NodeValue {
		n.Fields = append(append(known, Field{"expression", v}), appended[1:]...)
	} else if fields, ok := addressOf(appended); ok {
		e := &Node{Ref: n.Ref, Kind: "DIExpression", Fields: fields}
		n.Fields = append(known, Field{"expression", Value{Kind: NodeValue, Node: e}})
	}
}

// addressOf are the operations in the members of a local variable; ok is false where they
// are none.
func addressOf(numbers []Field) (fields []Field, ok bool) {
	for i := range numbers {
		if v := &numbers[i].Value; v.Kind != IRValue || !strings.HasPrefix(v.Text, "i64 ") {
			return nil, false
		}
	}
	return operationsOf(numbers, addressOperations)
}

// ownExpression are the operations that a local variable itself has, until LLVM 3.5.
func (m *Module) ownExpression(variable *Node) []Field {
	v := variable.Field("expression")
	e, ok := m.valueNode(&v)
	switch {
	case ok && e.Kind == "DIExpression":
		return e.Fields
	case ok && e.Kind == "MDTuple":
		if fields, ok := addressOf(e.Fields); ok {
			return fields
		}
	}
	return nil
}

// flagIndirectVariable is a flag of local variables of LLVM 3.3 to 3.6, which write flags
// as a number.
const flagIndirectVariable = 1 << 13

// isIndirect reports whether the value of a record is the address of the local variable.
func (n *Node) isIndirect() bool {
	flags := n.Field("flags")
	number, ok := flags.Int()
	return ok && flags.Kind == NumberValue && number&flagIndirectVariable != 0
}
