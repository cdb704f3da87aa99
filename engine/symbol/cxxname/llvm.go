// SPDX-License-Identifier: Apache-2.0

package cxxname

import "math"

// noPack is the number of the element of a pack where no pack is being written.
const noPack = math.MaxInt

// An llvmPrinter writes a tree as LLVM's tools do: a type as what stands before
// the name that it is the type of, and what stands behind.
type llvmPrinter struct {
	output
	// brackets is not 0 inside of brackets in template arguments, where an
	// operator > needs none.
	brackets int
	// pack and packs are the element of the packs that is written, and how many
	// there are.
	pack, packs int
	// namesAll is set where constructors of types without a name are named too.
	namesAll bool
}

func (o *llvmPrinter) open(c byte) {
	o.brackets++
	o.byte(c)
}

func (o *llvmPrinter) close(c byte) {
	o.brackets--
	o.byte(c)
}

// enclosed writes something in round brackets.
func (o *llvmPrinter) enclosed(n *node) {
	o.open('(')
	o.print(n)
	o.close(')')
}

func (o *llvmPrinter) print(n *node) {
	if o.enter(n) {
		o.left(n)
		o.right(n)
		o.leave(n)
	}
}

// has says whether a type is of a shape.
func (o *llvmPrinter) has(n *node, s shape) bool {
	for range maxDepth {
		if n == nil || n.shape&isUnknown == 0 {
			return n != nil && n.shape&s != 0
		}
		switch n.kind {
		case kindForward, kindConst, kindVolatile, kindRestrict:
			n = n.a
		case kindPack:
			n = o.element(n)
		case kindPointer, kindReference, kindRvalue:
			if s != hasRight {
				return false
			}
			n = n.a
		case kindMember:
			if s != hasRight {
				return false
			}
			n = n.b
		default:
			return n.shape&s != 0
		}
	}
	return false
}

// element is the element of a pack that is written; nil where there is none.
func (o *llvmPrinter) element(n *node) *node {
	if o.packs == noPack {
		o.packs, o.pack = len(n.list), 0
	}
	if o.pack < len(n.list) {
		return n.list[o.pack]
	}
	return nil
}

// list writes nodes with commas between those that are not empty.
func (o *llvmPrinter) list(list []*node) {
	first := true
	for _, n := range list {
		before := len(o.text)
		if !first {
			o.string(", ")
		}
		after := len(o.text)
		o.operand(n, precComma, false)
		if len(o.text) == after {
			o.text = o.text[:before]
			continue
		}
		first = false
	}
}

// operand writes an expression in brackets where what is around it binds more.
func (o *llvmPrinter) operand(n *node, prec precedence, worse bool) {
	if worse {
		prec++
	}
	if n != nil && n.prec >= prec {
		o.enclosed(n)
		return
	}
	o.print(n)
}

// left writes what stands before a declared name.
func (o *llvmPrinter) left(n *node) {
	switch n.kind {
	case kindForward:
		if o.enter(n.a) {
			o.left(n.a)
			o.leave(n.a)
		}
	case kindPack:
		if e := o.element(n); o.enter(e) {
			o.left(e)
			o.leave(e)
		}
	case kindExpansion:
		o.expansion(n.a)
	case kindPointer, kindReference, kindRvalue:
		o.pointer(n)
	case kindConst, kindVolatile, kindRestrict:
		o.leftOf(n.a)
		o.string(modifierTexts[n.kind])
	case kindComplex:
		o.leftOf(n.a)
		o.string(" complex")
	case kindImaginary:
		o.leftOf(n.a)
		o.string(" imaginary")
	case kindPostfix:
		o.leftOf(n.a)
		o.string(n.text)
	case kindMember:
		o.leftOf(n.b)
		if o.has(n.b, isArray|isFunction) {
			o.byte('(')
		} else {
			o.byte(' ')
		}
		o.print(n.a)
		o.string("::*")
	case kindArray:
		o.leftOf(n.b)
	case kindFunction:
		o.leftOf(n.a)
		o.byte(' ')
	case kindEncoding:
		if r := n.b.a; r != nil {
			o.leftOf(r)
			if !o.has(r, hasRight) {
				o.byte(' ')
			}
		}
		o.print(n.a)
	case kindTypeDecl, kindConceptDecl, kindValueDecl, kindTemplateDecl, kindPackDecl:
		o.declarationLeft(n)
	default:
		o.whole(n)
	}
}

func (o *llvmPrinter) leftOf(n *node) {
	if o.enter(n) {
		o.left(n)
		o.leave(n)
	}
}

// modifierTexts are what qualifiers of types are written as.
var modifierTexts = map[kind]string{
	kindConst: " const", kindVolatile: " volatile", kindRestrict: " restrict", kindComplex: " _Complex", kindImaginary: " _Imaginary",
}

// right writes what stands behind a declared name.
func (o *llvmPrinter) right(n *node) {
	switch n.kind {
	case kindForward, kindConst, kindVolatile, kindRestrict:
		o.rightOf(n.a)
	case kindPack:
		o.rightOf(o.element(n))
	case kindPointer, kindReference, kindRvalue:
		base, _ := o.collapse(n)
		if o.has(base, isArray|isFunction) {
			o.byte(')')
		}
		o.rightOf(base)
	case kindMember:
		if o.has(n.b, isArray|isFunction) {
			o.byte(')')
		}
		o.rightOf(n.b)
	case kindArray:
		if o.last() != ']' {
			o.byte(' ')
		}
		o.byte('[')
		if n.a != nil {
			o.print(n.a)
		}
		o.byte(']')
		o.rightOf(n.b)
	case kindFunction:
		o.parameters(n)
	case kindEncoding:
		o.parameters(n.b)
		if n.flag {
			o.string(" [enable_if:")
			o.list(n.list)
			o.byte(']')
		}
		if n.c != nil {
			o.string(" requires ")
			o.print(n.c)
		}
	case kindValueDecl, kindTemplateDecl, kindTypeDecl, kindConceptDecl, kindPackDecl:
		o.declarationRight(n)
	}
}

func (o *llvmPrinter) rightOf(n *node) {
	if o.enter(n) {
		o.right(n)
		o.leave(n)
	}
}

// parameters writes those of a function, and what stands behind them.
func (o *llvmPrinter) parameters(n *node) {
	o.open('(')
	o.list(n.list)
	o.close(')')
	o.rightOf(n.a)
	for _, q := range []struct {
		is   qualifiers
		text string
	}{{isConst, " const"}, {isVolatile, " volatile"}, {isRestrict, " restrict"}, {isLvalue, " &"}, {isRvalue, " &&"}} {
		if n.quals&q.is != 0 {
			o.string(q.text)
		}
	}
	if n.b != nil {
		o.byte(' ')
		o.print(n.b)
	}
}

// collapse follows references to references (ABI 5.1.5, C++ [dcl.ref]).
func (o *llvmPrinter) collapse(n *node) (base *node, mark string) {
	if n.kind == kindPointer {
		return n.a, "*"
	}
	mark = "&&"
	for range maxDepth {
		if n.kind == kindReference {
			mark = "&"
		}
		base = n.a
		n = o.syntax(base)
		if n == nil || n.kind != kindReference && n.kind != kindRvalue {
			return base, mark
		}
	}
	return nil, mark
}

// syntax is what stands for a parameter.
func (o *llvmPrinter) syntax(n *node) *node {
	for range maxDepth {
		switch {
		case n == nil:
			return nil
		case n.kind == kindForward:
			n = n.a
		case n.kind == kindPack:
			e := o.element(n)
			if e == nil {
				return n
			}
			n = e
		default:
			return n
		}
	}
	return nil
}

func (o *llvmPrinter) pointer(n *node) {
	base, mark := o.collapse(n)
	if base == nil {
		return
	}
	if n.kind == kindPointer && base.kind == kindProtocol && base.a.kind == kindName && base.a.text == "objc_object" {
		o.string("id<" + base.text + ">")
		return
	}
	o.leftOf(base)
	if o.has(base, isArray) {
		o.byte(' ')
	}
	if o.has(base, isArray|isFunction) {
		o.byte('(')
	}
	o.string(mark)
}

// expansion writes a pattern for each element of the packs in it.
func (o *llvmPrinter) expansion(pattern *node) {
	defer func(pack, packs int) { o.pack, o.packs = pack, packs }(o.pack, o.packs)
	o.pack, o.packs = noPack, noPack
	at := len(o.text)
	o.print(pattern)
	switch o.packs {
	case noPack: // only parameters of functions
		o.string("...")
	case 0:
		o.text = o.text[:at]
	}
	if o.packs == noPack {
		return
	}
	for i := 1; i < o.packs && !o.failed; i++ {
		o.string(", ")
		o.pack = i
		o.print(pattern)
	}
}

// inAngles writes template arguments.
func (o *llvmPrinter) inAngles(write func()) {
	was := o.brackets
	o.brackets = 0
	o.byte('<')
	write()
	o.byte('>')
	o.brackets = was
}

func (o *llvmPrinter) declarationLeft(n *node) {
	switch n.kind {
	case kindTypeDecl:
		o.string("typename ")
	case kindConceptDecl:
		o.print(n.b)
		o.byte(' ')
	case kindValueDecl:
		o.leftOf(n.b)
		if !o.has(n.b, hasRight) {
			o.byte(' ')
		}
	case kindTemplateDecl:
		o.string("template")
		o.inAngles(func() { o.list(n.list) })
		o.string(" typename ")
	case kindPackDecl:
		o.leftOf(n.a)
		o.string("...")
	}
}

func (o *llvmPrinter) declarationRight(n *node) {
	switch n.kind {
	case kindPackDecl:
		o.rightOf(n.a)
		return
	case kindValueDecl:
		o.print(n.a)
		o.rightOf(n.b)
		return
	}
	o.print(n.a)
	if n.c != nil {
		o.string(" requires ")
		o.print(n.c)
	}
}
