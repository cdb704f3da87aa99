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
	compute := unaryOperations[e.text]
	return x.then(classNumber, nil, func(_ context.Context, _ *run, o operand) (operand, error) {
		return operand{n: compute(o.n)}, nil
	}), nil
}

// unaryOperations are the operators before a number.
var unaryOperations = map[string]func(n uint64) uint64{
	"!": func(n uint64) uint64 { return truth(n == 0) },
	"-": func(n uint64) uint64 { return -n },
	"~": func(n uint64) uint64 { return ^n },
}

// addressOf returns the address of a place in memory.
func addressOf(x *bound) (*bound, error) {
	if x.class != classPlace {
		return nil, notBound("the address of what is no object")
	}
	return x.then(classNumber, nil, func(_ context.Context, _ *run, o operand) (operand, error) {
		_, address, ok := o.l.MemoryAddress()
		if !ok {
			return o, errNoAddress
		}
		return operand{n: address}, nil
	}), nil
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
	sign := uint64(0) // flipped, to compare signed numbers as unsigned ones
	if isSignedNumber(x) || isSignedNumber(y) {
		sign = 1 << 63
	}
	compare, compute := comparisons[op], operations[op]
	return x.then(classNumber, nil, func(ctx context.Context, r *run, m operand) (operand, error) {
		n, err := y.eval(ctx, r)
		switch {
		case err != nil:
			return n, err
		case compare != nil:
			return operand{n: truth(compare(m.n^sign, n.n^sign))}, nil
		case n.n == 0 && (op == "/" || op == "%"):
			return operand{}, errDivision
		}
		return operand{n: compute(m.n, n.n)}, nil
	}), nil
}

func isSignedNumber(x *bound) bool {
	return x.t != nil && IsSigned(x.t.Base)
}

// operations are the operators between two numbers, except comparisons.
var operations = map[string]func(a, b uint64) uint64{
	"+":  func(a, b uint64) uint64 { return a + b },
	"-":  func(a, b uint64) uint64 { return a - b },
	"*":  func(a, b uint64) uint64 { return a * b },
	"/":  func(a, b uint64) uint64 { return a / b },
	"%":  func(a, b uint64) uint64 { return a % b },
	"&":  func(a, b uint64) uint64 { return a & b },
	"|":  func(a, b uint64) uint64 { return a | b },
	"^":  func(a, b uint64) uint64 { return a ^ b },
	"<<": func(a, b uint64) uint64 { return a << min(b, 64) },
	">>": func(a, b uint64) uint64 { return a >> min(b, 64) },
}

var comparisons = map[string]func(a, b uint64) bool{
	"==": func(a, b uint64) bool { return a == b },
	"!=": func(a, b uint64) bool { return a != b },
	"<":  func(a, b uint64) bool { return a < b },
	"<=": func(a, b uint64) bool { return a <= b },
	">":  func(a, b uint64) bool { return a > b },
	">=": func(a, b uint64) bool { return a >= b },
}
