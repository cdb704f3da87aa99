// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"fmt"
	"strconv"
	"strings"
)

// expression writes an expression.
func (o *llvmPrinter) expression(n *node) {
	switch n.kind {
	case kindUnary:
		o.unary(n)
	case kindBinary:
		o.binary(n)
	case kindTernary:
		o.ternary(n)
	case kindCall:
		o.call(n)
	case kindCast:
		o.enclosed(n.a)
		o.inBrackets(n.list)
	case kindNamedCast:
		o.string(n.op.symbol)
		o.inAngles(func() { o.leftOf(n.a) })
		o.open('(')
		o.operand(n.b, precDefault, false)
		o.close(')')
	case kindNew, kindDelete:
		o.allocation(n)
	case kindOfType:
		o.string(n.op.symbol + " ")
		o.enclosed(n.a)
	case kindSizeofPack, kindSizeofArgs:
		o.sizeofPack(n)
	case kindNoexcept:
		o.string("noexcept ")
		o.enclosed(n.a)
	case kindThrow:
		o.string("throw ")
		o.print(n.a)
	case kindGlobal:
		o.string("::")
		o.print(n.a)
	case kindLiteral:
		o.literal(n)
	case kindFloat:
		o.string(floatText(n.sub, n.text))
	case kindString:
		o.string(`"<`)
		o.print(n.a)
		o.string(`>"`)
	case kindLambdaOf:
		o.string("[]")
		if n.a.kind == kindLambda {
			o.closure(n.a)
		}
		o.string("{...}")
	default:
		o.rareExpression(n)
	}
}

// rareExpression writes the expressions that are rare.
func (o *llvmPrinter) rareExpression(n *node) {
	switch n.kind {
	case kindFold:
		o.fold(n)
	case kindList:
		if text, ok := stringOf(n); ok {
			o.string(text)
			return
		}
		if n.a != nil {
			o.print(n.a)
		}
		o.byte('{')
		o.list(n.list)
		o.byte('}')
	case kindDesignator, kindDesignatorRange:
		o.designator(n)
	case kindMemberCast:
		o.enclosed(n.a)
		o.enclosed(n.b)
	case kindSubobject:
		o.print(n.b)
		o.string(".<")
		o.print(n.a)
		o.string(" at offset ")
		switch {
		case n.text == "":
			o.byte('0')
		case n.text[0] == 'n':
			o.string("-" + n.text[1:])
		default:
			o.string(n.text)
		}
		o.byte('>')
	case kindVendorCall:
		o.string(n.text)
		o.inBrackets(n.list)
	case kindRequires:
		o.string("requires")
		if len(n.list) > 0 {
			o.byte(' ')
			o.inBrackets(n.list)
		}
		o.string(" {")
		for _, r := range n.decls {
			o.requirement(r)
		}
		o.string(" }")
	default:
		o.fail()
	}
}

func (o *llvmPrinter) inBrackets(list []*node) {
	o.open('(')
	o.list(list)
	o.close(')')
}

func (o *llvmPrinter) unary(n *node) {
	switch {
	case n.op.kind == operatorOf:
		o.string(n.op.symbol + " ")
		o.enclosed(n.a)
	case n.flag:
		o.operand(n.a, n.prec, true)
		o.string(n.op.symbol)
	default:
		o.string(n.op.symbol)
		o.operand(n.a, n.prec, false)
	}
}

func (o *llvmPrinter) binary(n *node) {
	symbol := n.op.symbol
	switch n.op.kind {
	case operatorIndex:
		o.operand(n.a, n.prec, false)
		o.open('[')
		o.operand(n.b, precDefault, false)
		o.close(']')
		return
	case operatorMember:
		o.operand(n.a, n.prec, true)
		o.string(symbol)
		o.operand(n.b, n.prec, false)
		return
	}
	all := o.brackets == 0 && (symbol == ">" || symbol == ">>")
	if all {
		o.open('(')
	}
	if n.prec == precAssign {
		o.operand(n.a, precOrIf, false)
	} else {
		o.operand(n.a, n.prec, true)
	}
	if symbol != "," {
		o.byte(' ')
	}
	o.string(symbol + " ")
	o.operand(n.b, n.prec, n.prec == precAssign)
	if all {
		o.close(')')
	}
}

func (o *llvmPrinter) ternary(n *node) {
	o.operand(n.a, n.prec, false)
	o.string(" ? ")
	o.operand(n.b, precDefault, false)
	o.string(" : ")
	o.operand(n.c, precAssign, true)
}

func (o *llvmPrinter) call(n *node) {
	if n.flag {
		o.enclosed(n.a)
	} else {
		o.print(n.a)
	}
	o.inBrackets(n.list)
}

func (o *llvmPrinter) allocation(n *node) {
	if n.flag {
		o.string("::")
	}
	o.string(n.op.symbol)
	if n.kind == kindDelete {
		o.byte(' ')
		o.print(n.a)
		return
	}
	if len(n.list) > 0 {
		o.inBrackets(n.list)
	}
	o.byte(' ')
	o.print(n.a)
	if n.b != nil && len(n.b.list) > 0 {
		o.inBrackets(n.b.list)
	}
}

func (o *llvmPrinter) sizeofPack(n *node) {
	if n.kind == kindSizeofArgs {
		o.string("sizeof... ")
		o.inBrackets(n.list)
		return
	}
	if n.a.kind == kindArgument {
		o.string("sizeof... ")
		o.enclosed(n.a)
		return
	}
	o.string("sizeof...")
	o.open('(')
	o.expansion(n.a)
	o.close(')')
}

// literal writes an integer: of the commonest types with a suffix, of others
// behind the type.
func (o *llvmPrinter) literal(n *node) {
	suffix, ok := "", false
	if n.a.kind == kindBuiltin {
		suffix, ok = literalSuffixes[n.a.text]
	}
	if !ok {
		o.enclosed(n.a)
	}
	if n.flag {
		o.byte('-')
	}
	o.string(n.text)
	o.string(suffix)
}

func (o *llvmPrinter) fold(n *node) {
	pack := func() {
		o.open('(')
		o.expansion(n.a)
		o.close(')')
	}
	o.open('(')
	if !n.flag || n.b != nil {
		if n.flag {
			o.operand(n.b, precCast, true)
		} else {
			pack()
		}
		o.string(" " + n.op.symbol + " ")
	}
	o.string("...")
	if n.flag || n.b != nil {
		o.string(" " + n.op.symbol + " ")
		if n.flag {
			pack()
		} else {
			o.operand(n.b, precCast, true)
		}
	}
	o.close(')')
}

func (o *llvmPrinter) designator(n *node) {
	switch {
	case n.kind == kindDesignatorRange:
		o.byte('[')
		o.print(n.a)
		o.string(" ... ")
		o.print(n.c)
		o.byte(']')
	case n.flag:
		o.byte('[')
		o.print(n.a)
		o.byte(']')
	default:
		o.byte('.')
		o.print(n.a)
	}
	if n.b.kind != kindDesignator && n.b.kind != kindDesignatorRange {
		o.string(" = ")
	}
	o.print(n.b)
}

func (o *llvmPrinter) requirement(n *node) {
	o.byte(' ')
	switch n.kind {
	case kindTypeRequirement:
		o.string("typename ")
		o.print(n.a)
	case kindNested:
		o.string("requires ")
		o.print(n.a)
	default:
		braces := n.flag || n.b != nil
		if braces {
			o.byte('{')
		}
		o.print(n.a)
		if braces {
			o.byte('}')
		}
		if n.flag {
			o.string(" noexcept")
		}
		if n.b != nil {
			o.string(" -> ")
			o.print(n.b)
		}
	}
	o.byte(';')
}

// stringOf is the text of a list of the characters of a string; false where it is
// another list.
func stringOf(n *node) (string, bool) {
	if n.a == nil || n.a.kind != kindArray || n.a.b.kind != kindBuiltin || n.a.b.text != "char" {
		return "", false
	}
	text := []byte{'"'}
	escaped := false // by a number, which a digit would go on with
	for _, c := range n.list {
		if c.kind != kindLiteral || c.flag || c.a.kind != kindBuiltin {
			return "", false
		}
		v, err := strconv.ParseUint(c.text, 10, 8)
		if err != nil {
			return "", false
		}
		if escaped && (isDigit(byte(v)) || v|0x20 >= 'a' && v|0x20 <= 'f') {
			text = append(text, `""`...)
		}
		at := strings.IndexByte("\a\b\f\n\r\t\v\"\\", byte(v))
		escaped = at < 0 && (v < ' ' || v == 0x7f)
		switch {
		case at >= 0:
			text = append(text, '\\', "abfnrtv\"\\"[at])
		case escaped && v < 8:
			text = append(text, '\\', '0'+byte(v))
		case escaped:
			text = fmt.Appendf(text, `\x%X`, v)
		default:
			text = append(text, byte(v))
		}
	}
	return string(append(text, '"')), true
}
