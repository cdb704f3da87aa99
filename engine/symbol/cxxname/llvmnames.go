// SPDX-License-Identifier: Apache-2.0

package cxxname

// whole writes what has no part behind a declared name.
func (o *llvmPrinter) whole(n *node) {
	switch n.kind {
	case kindName, kindBuiltin, kindBlock, kindBool, kindNullptr, kindFixed, kindArgument:
		o.string(n.text)
	case kindQualified, kindLocal:
		o.print(n.a)
		o.string("::")
		o.print(n.b)
	case kindTemplate:
		o.print(n.a)
		o.print(n.b)
	case kindArguments:
		o.arguments(n)
	case kindStd:
		o.standard(n)
	case kindTagged:
		o.leftOf(n.a)
		o.string("[abi:" + n.text + "]")
	case kindConstructor:
		o.string(o.baseName(n.a))
	case kindDestructor:
		o.byte('~')
		if n.flag {
			o.leftOf(n.a)
		} else {
			o.string(o.baseName(n.a))
		}
	case kindOperator:
		o.operator(n.op)
	case kindConversion, kindVendorOperator:
		o.string("operator ")
		o.print(n.a)
	case kindUserLiteral:
		o.string(`operator"" `)
		o.print(n.a)
	case kindUnnamed:
		o.string("'unnamed" + n.text + "'")
	case kindLambda:
		o.string("'lambda" + n.text + "'")
		o.closure(n)
	case kindSpecial:
		o.string(n.text)
		o.print(n.a)
	case kindSpecial2:
		o.string(n.text)
		o.print(n.a)
		o.string("-in-")
		o.print(n.b)
	case kindTemporary:
		o.string("reference temporary for ")
		o.print(n.a)
	case kindClone:
		o.print(n.a)
		o.string(" (" + n.text + ")")
	case kindTypedArg:
		o.print(n.b)
	default:
		o.rare(n)
	}
}

// rare writes the names and types that are rare.
func (o *llvmPrinter) rare(n *node) {
	switch n.kind {
	case kindBindings:
		o.open('[')
		o.list(n.list)
		o.close(']')
	case kindModule:
		if n.a != nil {
			o.print(n.a)
		}
		if n.flag {
			o.byte(':')
		} else if n.a != nil {
			o.byte('.')
		}
		o.print(n.b)
	case kindModuleEntity:
		o.print(n.a)
		o.byte('@')
		o.print(n.b)
	case kindFriend:
		o.print(n.a)
		o.string("::friend ")
		o.print(n.b)
	case kindVendor:
		o.string(n.text)
		if n.a != nil {
			o.byte('(')
			o.print(n.a)
			o.byte(')')
		}
	case kindBitInt:
		o.string(n.text + "_BitInt")
		o.enclosed(n.a)
	case kindVendorQualifier:
		o.print(n.a)
		o.string(" " + n.text)
		if n.b != nil {
			o.print(n.b)
		}
	case kindProtocol:
		o.print(n.a)
		o.string("<" + n.text + ">")
	case kindVector:
		o.vector(n)
	case kindDecltype:
		o.string("decltype")
		o.enclosed(n.a)
	case kindElaborated:
		o.string(n.text + " ")
		o.print(n.a)
	case kindExplicitThis:
		o.string("this ")
		o.print(n.a)
	case kindExceptions:
		o.exceptions(n)
	default:
		o.expression(n)
	}
}

func (o *llvmPrinter) arguments(n *node) {
	if n.flag {
		o.list(n.list)
		return
	}
	o.inAngles(func() { o.list(n.list) })
}

func (o *llvmPrinter) standard(n *node) {
	name := stdNames[n.sub]
	if !n.flag {
		o.string("std::" + name.short)
		return
	}
	o.string("std::" + name.long + "<char, std::char_traits<char>" + name.arguments + ">")
}

// baseName is the name that constructors of a class have; "" of one without a
// name.
func (o *llvmPrinter) baseName(n *node) string {
	for range maxDepth {
		switch {
		case n == nil:
			return ""
		case n.kind == kindName || n.kind == kindBlock:
			return n.text
		case n.kind == kindStd && n.flag:
			return stdNames[n.sub].long
		case n.kind == kindStd:
			return stdNames[n.sub].short
		case n.kind == kindQualified || n.kind == kindFriend:
			n = n.b
		case n.kind == kindTemplate, n.kind == kindTagged, n.kind == kindModuleEntity:
			n = n.a
		case o.namesAll && (n.kind == kindUnnamed || n.kind == kindLambda):
			inner := llvmPrinter{namesAll: true, pack: noPack, packs: noPack, brackets: 1}
			inner.print(n)
			return string(inner.text)
		default:
			return ""
		}
	}
	return ""
}

func (o *llvmPrinter) operator(op *operator) {
	o.string("operator")
	if isLower(op.symbol[0]) {
		o.byte(' ')
	}
	o.string(op.symbol)
}

// closure writes the parameters of a lambda.
func (o *llvmPrinter) closure(n *node) {
	if len(n.decls) > 0 {
		o.inAngles(func() { o.list(n.decls) })
	}
	if n.a != nil {
		o.string(" requires ")
		o.print(n.a)
		o.byte(' ')
	}
	o.open('(')
	o.list(n.list)
	o.close(')')
	if n.b != nil {
		o.string(" requires ")
		o.print(n.b)
	}
}

func (o *llvmPrinter) vector(n *node) {
	if n.text == "pixel" {
		o.string("pixel vector[")
	} else {
		o.print(n.b)
		o.string(" vector[")
	}
	if n.a != nil {
		o.print(n.a)
	}
	o.byte(']')
}

func (o *llvmPrinter) exceptions(n *node) {
	if n.a != nil {
		o.string("noexcept")
		o.enclosed(n.a)
		return
	}
	o.string("throw")
	o.open('(')
	o.list(n.list)
	o.close(')')
}
