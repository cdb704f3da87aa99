// SPDX-License-Identifier: Apache-2.0

package cxxname

// subexpression writes an expression, in brackets unless it is a name.
func (o *gnuPrinter) subexpression(n *node) {
	switch n.kind {
	case kindName, kindQualified, kindList, kindArgument:
		if !n.flag || n.kind != kindName {
			o.print(n)
			return
		}
	}
	o.byte('(')
	o.print(n)
	o.byte(')')
}

// expression writes an expression.
func (o *gnuPrinter) expression(n *node) {
	switch n.kind {
	case kindUnary:
		o.unary(n)
	case kindBinary:
		o.binary(n)
	case kindTernary:
		o.subexpression(n.a)
		o.string(n.op.symbol)
		o.subexpression(n.b)
		o.string(" : ")
		o.subexpression(n.c)
	case kindCall:
		o.callee(n.a)
		o.inBrackets(n.list)
	case kindCast:
		o.byte('(')
		o.print(n.a)
		o.byte(')')
		if n.flag || len(n.list) != 1 {
			o.inBrackets(n.list)
		} else {
			o.subexpression(n.list[0])
		}
	case kindNamedCast:
		o.string(n.op.symbol + "<")
		o.print(n.a)
		o.string(">(")
		o.print(n.b)
		o.byte(')')
	case kindNew:
		o.allocation(n)
	case kindLiteral:
		o.literal(n)
	case kindGlobal:
		o.string("::")
		o.print(n.a)
	default:
		o.rareExpression(n)
	}
}

// rareExpression writes the expressions that are rare.
func (o *gnuPrinter) rareExpression(n *node) {
	switch n.kind {
	case kindDelete:
		o.string(n.op.gnuSymbol())
		o.subexpression(n.a)
	case kindOfType:
		o.string(n.op.gnuSymbol())
		o.byte('(')
		o.print(n.a)
		o.byte(')')
	case kindSizeofPack, kindSizeofArgs:
		o.string(decimal(o.packLength(n)))
	case kindThrow:
		o.string("throw ")
		o.subexpression(n.a)
	case kindArgument:
		if n.text != "" {
			o.string(n.text)
			return
		}
		o.string("{parm#" + decimal(n.num) + "}")
	case kindFold:
		o.fold(n)
	case kindList:
		if n.a != nil {
			o.print(n.a)
		}
		o.byte('{')
		o.list(n.list)
		o.byte('}')
	case kindDesignator, kindDesignatorRange:
		o.designator(n)
	case kindVendorCall:
		o.string(n.text)
		o.inBrackets(n.list)
	default:
		o.fail()
	}
}

func (o *gnuPrinter) inBrackets(list []*node) {
	o.byte('(')
	o.list(list)
	o.byte(')')
}

func (o *gnuPrinter) unary(n *node) {
	operand := n.a
	if n.op.code == "ad" && operand.kind == kindEncoding && operand.a.kind == kindQualified && operand.b.kind == kindFunction {
		operand = operand.a // the address of a function, without its parameters
	}
	if n.flag {
		o.subexpression(operand)
		o.string(n.op.symbol)
		return
	}
	o.string(n.op.gnuSymbol())
	o.subexpression(operand)
}

// callee writes the function of a call, without the types of its parameters.
func (o *gnuPrinter) callee(n *node) {
	if n.kind == kindEncoding {
		if n.b.kind != kindFunction {
			o.fail()
			return
		}
		n = n.a
	}
	o.subexpression(n)
}

func (o *gnuPrinter) binary(n *node) {
	if n.op.symbol == ">" {
		o.byte('(')
	}
	o.subexpression(n.a)
	if n.op.kind == operatorIndex {
		o.byte('[')
		o.print(n.b)
		o.byte(']')
	} else {
		o.string(n.op.symbol)
		o.subexpression(n.b)
	}
	if n.op.symbol == ">" {
		o.byte(')')
	}
}

func (o *gnuPrinter) allocation(n *node) {
	o.string("new ")
	if len(n.list) > 0 {
		o.inBrackets(n.list)
		o.byte(' ')
	}
	o.print(n.a)
	switch {
	case n.b == nil:
	case n.b.kind == kindArguments:
		o.inBrackets(n.b.list)
	default:
		o.subexpression(n.b)
	}
}

// packLength is how many arguments sizeof... has.
func (o *gnuPrinter) packLength(n *node) int {
	if n.kind == kindSizeofPack {
		pack := o.findPack(n.a, 0)
		if pack == nil {
			return 0
		}
		return len(pack.list)
	}
	count := 0
	for _, a := range n.list {
		if a.kind == kindExpansion {
			if pack := o.findPack(a.a, 0); pack != nil {
				count += len(pack.list)
			}
			continue
		}
		count++
	}
	return count
}

// literal writes an integer: of the commonest types with a suffix, of others
// behind the type.
func (o *gnuPrinter) literal(n *node) {
	isFloat := false
	if n.a.kind == kindBuiltin {
		suffix, ok := literalSuffixes[n.a.text]
		switch {
		case ok:
			if n.flag {
				o.byte('-')
			}
			o.string(n.text + suffix)
			return
		case n.a.text == "bool" && !n.flag && (n.text == "0" || n.text == "1"):
			o.string(map[string]string{"0": "false", "1": "true"}[n.text])
			return
		}
		switch n.a.text {
		case "float", "double", "long double", "__float128", "decimal32", "decimal64", "decimal128", "half":
			isFloat = true
		}
	}
	o.byte('(')
	o.print(n.a)
	o.byte(')')
	if n.flag {
		o.byte('-')
	}
	if isFloat {
		o.byte('[')
	}
	o.string(n.text)
	if isFloat {
		o.byte(']')
	}
}

func (o *gnuPrinter) fold(n *node) {
	pack := o.pack
	o.pack = -1
	first, second := n.a, n.b
	if n.flag && n.b != nil {
		first, second = n.b, n.a
	}
	o.byte('(')
	switch {
	case second != nil:
		o.subexpression(first)
		o.string(n.op.symbol + "..." + n.op.symbol)
		o.subexpression(second)
	case n.flag:
		o.string("..." + n.op.symbol)
		o.subexpression(first)
	default:
		o.subexpression(first)
		o.string(n.op.symbol + "...")
	}
	o.byte(')')
	o.pack = pack
}

func (o *gnuPrinter) designator(n *node) {
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
	if n.b.kind == kindDesignator || n.b.kind == kindDesignatorRange {
		o.print(n.b)
		return
	}
	o.byte('=')
	o.subexpression(n.b)
}
