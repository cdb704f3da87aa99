// SPDX-License-Identifier: Apache-2.0

package locexpr

import "github.com/unwindd/unwindd/internal/leb128"

// quick is the effect of an operation on integers of the generic type alone, the most
// frequent case. quickly executes it; the operation's function handles every case.
type quick uint8

const (
	notQuick    quick = iota
	quickLit          // push the operation's number
	quickBreg         // push the contents of the register of that number, displaced
	quickUconst       // add the operand to the top entry
	quickAnd          // from here on: replace the two top entries
	quickOr
	quickXor
	quickPlus
	quickMinus
	quickMul
	quickShl
	quickShr
	quickShra
	quickEq
	quickNe
	quickLt
	quickLe
	quickGt
	quickGe
)

// quickly executes operations from pos on, until one that is not quick: because of its effect
// or the entries on the stack, because its operand is longer than a byte, or because a limit
// is reached. It returns the position of that operation. An error is about a register that
// the operation there cannot read.
//
// An operation of a few instructions costs less than to call its function and to pass the
// state through memory, so this is one loop, with its state in variables. Nothing here is
// traced. All of it is allowed in call frame information.
func (ev *evaluation) quickly(pos int) (int, error) {
	expr, operations := ev.dec.Expr, &ev.dec.Dialect.tables().operations
	stack, n, steps, mask := ev.stack, ev.n, ev.e.steps, ev.mask
loop:
	for pos < len(expr) && steps > 0 {
		op := &operations[expr[pos]]
		next := pos + 1
		switch {
		case op.quick >= quickAnd:
			if n < 2 || n > len(stack) {
				break loop
			}
			s, t := &stack[n-2], &stack[n-1]
			if s.kind > addressEntry || t.kind > addressEntry {
				break loop
			}
			s.kind = genericEntry
			s.value.word = ev.word(op.quick, s.value.word, t.value.word) & mask
			n--
		case op.quick == quickLit && n < len(stack):
			stack[n].kind = genericEntry
			stack[n].value.word = op.number & mask
			n++
		case next >= len(expr) || expr[next] >= leb128.More:
			break loop
		case op.quick == quickBreg && n < len(stack):
			// An evaluation by the context may count steps of its own.
			ev.e.steps = steps - 1
			v, err := ev.registerValue(op.number, ev.bits)
			if err != nil {
				return pos, err
			}
			steps = ev.e.steps + 1
			stack[n].kind = addressEntry
			stack[n].value.word = (v + uint64(leb128.Byte(expr[next]))) & mask
			n++
			next++
		case op.quick == quickUconst && n >= 1 && n <= len(stack) && stack[n-1].kind <= addressEntry:
			stack[n-1].kind = genericEntry
			stack[n-1].value.word = (stack[n-1].value.word + uint64(expr[next])) & mask
			next++
		default:
			break loop
		}
		pos = next
		steps--
	}
	ev.n, ev.e.steps = n, steps
	return pos, nil
}

// word computes with two integers of the generic type. They are unsigned, but compare and
// shift right arithmetically as signed ones (DWARF 5, 2.5.1.4 and 2.5.1.5).
func (ev *evaluation) word(op quick, a, b uint64) uint64 {
	holds := false
	switch op {
	case quickAnd:
		return a & b
	case quickOr:
		return a | b
	case quickXor:
		return a ^ b
	case quickPlus:
		return a + b
	case quickMinus:
		return a - b
	case quickMul:
		return a * b
	case quickShl:
		return a << b
	case quickShr:
		return a >> b
	case quickShra:
		return uint64(ev.signed(a) >> b)
	case quickEq:
		holds = a == b
	case quickNe:
		holds = a != b
	case quickLt:
		holds = ev.signed(a) < ev.signed(b)
	case quickLe:
		holds = ev.signed(a) <= ev.signed(b)
	case quickGt:
		holds = ev.signed(a) > ev.signed(b)
	case quickGe:
		holds = ev.signed(a) >= ev.signed(b)
	}
	if holds {
		return 1
	}
	return 0
}
