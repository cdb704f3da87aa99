// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
)

// This file computes: the operators and functions of expressions of forms.

func (b *binder) unary(e *expr) (*bound, error) {
	x, err := b.expr(e.args[0])
	if err != nil {
		return nil, err
	}
	switch e.text {
	case "*":
		return deref(x)
	case "&":
		return addressOf(x)
	}
	if x, err = loaded(x); err != nil {
		return nil, err
	}
	var compute func(n uint64) uint64
	switch e.text {
	case "!":
		compute = func(n uint64) uint64 { return truth(n == 0) }
	case "-":
		compute = func(n uint64) uint64 { return -n }
	default:
		compute = func(n uint64) uint64 { return ^n }
	}
	return &bound{class: classNumber, eval: func(ctx context.Context, r *run) (operand, error) {
		o, err := x.eval(ctx, r)
		return operand{n: compute(o.n)}, err
	}}, nil
}

// addressOf returns the address of a place in memory.
func addressOf(x *bound) (*bound, error) {
	if x.class != classPlace {
		return nil, notBound("the address of what is no object")
	}
	return &bound{class: classNumber, eval: func(ctx context.Context, r *run) (operand, error) {
		o, err := x.eval(ctx, r)
		if err != nil {
			return o, err
		}
		_, address, ok := o.l.MemoryAddress()
		if !ok {
			return o, errNoAddress
		}
		return operand{n: address}, nil
	}}, nil
}

// errNoAddress is the error for an object that is not in memory as a whole.
var errNoAddress = errors.New("the object is not in memory")

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

var errDivision = errors.New("a division by 0")

func (b *binder) binary(e *expr) (*bound, error) {
	x, err := b.number(e.args[0])
	if err != nil {
		return nil, err
	}
	y, err := b.number(e.args[1])
	if err != nil {
		return nil, err
	}
	op := e.text
	if op == "&&" || op == "||" {
		return &bound{class: classNumber, eval: func(ctx context.Context, r *run) (operand, error) {
			o, err := x.eval(ctx, r)
			if err != nil || (o.n != 0) == (op == "||") {
				return operand{n: truth(o.n != 0)}, err
			}
			o, err = y.eval(ctx, r)
			return operand{n: truth(o.n != 0)}, err
		}}, nil
	}
	signed := isSignedNumber(x) || isSignedNumber(y)
	return &bound{class: classNumber, eval: func(ctx context.Context, r *run) (operand, error) {
		m, err := x.eval(ctx, r)
		if err != nil {
			return m, err
		}
		n, err := y.eval(ctx, r)
		if err != nil {
			return n, err
		}
		value, err := calculate(op, m.n, n.n, signed)
		return operand{n: value}, err
	}}, nil
}

func isSignedNumber(x *bound) bool {
	return x.t != nil && IsSigned(x.t.Base)
}

func calculate(op string, a, b uint64, signed bool) (uint64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/", "%":
		if b == 0 {
			return 0, errDivision
		}
		if op == "/" {
			return a / b, nil
		}
		return a % b, nil
	case "&":
		return a & b, nil
	case "|":
		return a | b, nil
	case "^":
		return a ^ b, nil
	case "<<":
		return a << min(b, 64), nil
	case ">>":
		return a >> min(b, 64), nil
	case "==":
		return truth(a == b), nil
	case "!=":
		return truth(a != b), nil
	}
	if signed { // flips the sign bit, to compare signed numbers as unsigned ones
		a, b = a^1<<63, b^1<<63
	}
	switch op {
	case "<":
		return truth(a < b), nil
	case "<=":
		return truth(a <= b), nil
	case ">":
		return truth(a > b), nil
	}
	return truth(a >= b), nil
}
