// SPDX-License-Identifier: Apache-2.0

// Package postfix translates expressions in postfix notation, as STACK CFI records of Breakpad's
// symbol files and the frame data of 32-bit x86 have them, into rules of call frame information.
package postfix

import (
	"strconv"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
	"github.com/unwindd/unwindd/locexpr"
)

// CFAName is the name of the CFA.
const CFAName = ".cfa"

// Registers returns the DWARF number of a register by its name ("$rsp" of x86-64, "x29" of
// AArch64); false when there is no such register. The name ".ra" is the column of the return
// address.
type Registers func(name string) (number uint64, ok bool)

// unsignedDivide divides a by b as unsigned numbers, where DW_OP_div is signed and
// DW_OP_mod is not. Comments show the stack.
//
// For b in the lower half of the range the quotient of a/2 is doubled, which is q or 1 too
// small: too small where the remainder of a is not below b. For b in the upper half the
// quotient p is 1 where a is not below b. There are no branches, whose distance would be in
// the byte order of the target.
var unsignedDivide = []byte{
	dw.OpOver, dw.OpLit0 + 1, dw.OpShr, dw.OpOver, dw.OpDiv, dw.OpLit0 + 1, dw.OpShl, // a b 2*((a/2)/b)
	dw.OpDup, dw.OpPick, 2, dw.OpMul, dw.OpPick, 3, dw.OpSwap, dw.OpMinus, // a b 2*((a/2)/b) r
	dw.OpDup, dw.OpPick, 3, dw.OpMod, dw.OpNe, dw.OpPlus, // a b q
	dw.OpPick, 2, dw.OpPick, 2, dw.OpMod, dw.OpPick, 3, dw.OpNe, // a b q p
	dw.OpOver, dw.OpMinus, dw.OpPick, 2, dw.OpLit0, dw.OpLt, dw.OpMul, dw.OpPlus, // a b (b < 0 ? p : q)
	dw.OpSwap, dw.OpDrop, dw.OpSwap, dw.OpDrop,
}

// operators are the operators of two operands, by their token, with their operations. "@"
// aligns the first operand down to the second, a power of two.
var operators = map[string][]byte{
	"+": {dw.OpPlus}, "-": {dw.OpMinus}, "*": {dw.OpMul}, "/": unsignedDivide, "%": {dw.OpMod}, "@": {dw.OpNeg, dw.OpAnd},
}

// The bounds of an expression: the operands on its stack, which DW_OP_pick counts in one
// byte, and its code. A compiler's rule has two operands.
const (
	MaxOperands = 64
	MaxCode     = 4096
)

// base is the base of an operand.
type base uint8

const (
	constant base = iota
	theCFA
	theRegister
	somethingElse
)

// operand describes a value on the stack of an expression: base plus offset, or, where it
// is loaded, the memory there.
type operand struct {
	base     base
	register uint64
	offset   int64
	loaded   bool
}

// Expression is an expression ("STACK CFI records") while it is translated, token by token. The
// code runs on a stack with the CFA at its bottom, if hasCFA is set, and leaves the value on top.
type Expression struct {
	registers Registers
	code      []byte
	stack     []operand
	hasCFA    bool // .cfa is used
	isLoaded  bool // its last operation is DW_OP_deref
}

// New returns an expression without a token.
func New(registers Registers) Expression { return Expression{registers: registers} }

// Add translates a token; false when it is none, when it names an unknown register, and when the
// expression is too long.
func (p *Expression) Add(token []byte) bool {
	return p.token(token) && len(p.stack) <= MaxOperands && len(p.code) <= MaxCode
}

// CFA returns the expression as the rule of the CFA, which cannot name .cfa itself; false when it
// is no whole expression.
func (p *Expression) CFA() (cfi.CFARule, bool) {
	if len(p.stack) != 1 || p.hasCFA {
		return cfi.CFARule{}, false
	}
	if v := p.stack[0]; v.base == theRegister && !v.loaded {
		return cfi.CFARule{Kind: cfi.CFARegister, Register: v.register, Offset: v.offset, Space: locexpr.DefaultSpace}, true
	}
	return cfi.CFARule{Kind: cfi.CFAExpression, Expr: p.code, Space: locexpr.DefaultSpace}, true
}

// Rule returns the expression as the rule of a column, in a row with the rule cfa; false when it is
// no whole expression.
func (p *Expression) Rule(column uint64, cfa *cfi.CFARule) (cfi.Rule, bool) {
	if len(p.stack) != 1 {
		return cfi.Rule{Kind: cfi.Undefined}, false
	}
	v := p.stack[0]
	if v.base == theRegister && (v.loaded || v.offset != 0) && cfa.Kind == cfi.CFARegister && cfa.Register == v.register {
		v.base, v.offset = theCFA, v.offset-cfa.Offset
	}
	switch {
	case v.base == theCFA && v.loaded:
		return cfi.Rule{Kind: cfi.Offset, Offset: v.offset}, true
	case v.base == theCFA:
		return cfi.Rule{Kind: cfi.ValOffset, Offset: v.offset}, true
	case v.base == theRegister && !v.loaded && v.offset == 0 && v.register == column:
		return cfi.Rule{Kind: cfi.SameValue}, true
	case v.base == theRegister && !v.loaded && v.offset == 0:
		return cfi.Rule{Kind: cfi.Register, Register: v.register}, true
	case p.isLoaded:
		return cfi.Rule{Kind: cfi.Expression, Expr: p.code[:len(p.code)-1]}, true
	}
	return cfi.Rule{Kind: cfi.ValExpression, Expr: p.code}, true
}

func (p *Expression) token(token []byte) bool {
	if p.isLoaded = len(token) == 1 && token[0] == '^'; p.isLoaded {
		return p.load()
	}
	if code, ok := operators[string(token)]; ok {
		return p.operate(token[0], code)
	}
	if len(token) == 0 {
		return false
	}
	if c := token[len(token)-1]; c >= '0' && c <= '9' && (token[0] == '-' || token[0] >= '0' && token[0] <= '9') {
		return p.number(string(token))
	}
	return p.name(string(token))
}

func (p *Expression) load() bool {
	if len(p.stack) == 0 {
		return false
	}
	p.code = append(p.code, dw.OpDeref)
	top := &p.stack[len(p.stack)-1]
	if (top.base == theCFA || top.base == theRegister) && !top.loaded {
		top.loaded = true
	} else {
		*top = operand{base: somethingElse}
	}
	return true
}

func (p *Expression) operate(operator byte, code []byte) bool {
	n := len(p.stack)
	if n < 2 {
		return false
	}
	p.code = append(p.code, code...)
	a, b := p.stack[n-2], p.stack[n-1]
	p.stack = append(p.stack[:n-2], sum(operator, a, b))
	return true
}

// sum describes a sum or difference. Offsets wrap around, as addresses do.
func sum(operator byte, a, b operand) operand {
	if operator == '+' && a.base == constant {
		a, b = b, a
	}
	if b.base != constant || a.base == somethingElse || a.loaded {
		return operand{base: somethingElse}
	}
	switch operator {
	case '+':
		a.offset += b.offset
	case '-':
		a.offset -= b.offset
	default:
		return operand{base: somethingElse}
	}
	return a
}

// number pushes a decimal number. Breakpad's own reader accepts numbers of 64 bits with or
// without a sign.
func (p *Expression) number(token string) bool {
	v, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		u, err := strconv.ParseUint(token, 10, 64)
		if err != nil {
			return false
		}
		v = int64(u)
	}
	p.stack = append(p.stack, operand{offset: v})
	switch {
	case v >= 0 && v < 32:
		p.code = append(p.code, dw.OpLit0+byte(v))
	default:
		p.code = leb128.AppendSigned(append(p.code, dw.OpConsts), v)
	}
	return true
}

// name pushes .cfa or a register.
func (p *Expression) name(token string) bool {
	if token == CFAName {
		p.hasCFA = true
		p.code = append(p.code, dw.OpPick, byte(len(p.stack)))
		p.stack = append(p.stack, operand{base: theCFA})
		return true
	}
	number, ok := p.registers(token)
	if !ok {
		return false
	}
	p.stack = append(p.stack, operand{base: theRegister, register: number})
	if number < 32 {
		p.code = append(p.code, dw.OpBreg0+byte(number), 0)
		return true
	}
	p.code = append(p.code, dw.OpBregx)
	for ; number >= 0x80; number >>= 7 {
		p.code = append(p.code, byte(number)|0x80)
	}
	p.code = append(p.code, byte(number), 0)
	return true
}
