// SPDX-License-Identifier: Apache-2.0

package cxxname

import "strings"

// builtins are the types of one letter (ABI 5.1.5.2).
var builtins = [256]string{
	'a': "signed char", 'b': "bool", 'c': "char", 'd': "double", 'e': "long double", 'f': "float", 'g': "__float128",
	'h': "unsigned char", 'i': "int", 'j': "unsigned int", 'l': "long", 'm': "unsigned long", 'n': "__int128",
	'o': "unsigned __int128", 's': "short", 't': "unsigned short", 'v': "void", 'w': "wchar_t", 'x': "long long",
	'y': "unsigned long long", 'z': "...",
}

// builtinsD are those that begin with D.
var builtinsD = [256]string{
	'a': "auto", 'c': "decltype(auto)", 'd': "decimal64", 'e': "decimal128", 'f': "decimal32", 'h': "half", 'i': "char32_t",
	'n': "std::nullptr_t", 's': "char16_t", 'u': "char8_t",
}

// typ reads a type (ABI 5.1.5).
func (p *parser) typ() *node {
	p.enter()
	defer p.leave()
	if p.failed {
		return &p.none
	}
	c := p.peek(0)
	if text := builtins[c]; text != "" {
		p.at++
		return p.node(node{kind: kindBuiltin, text: text})
	}
	if p.isGNU() && p.isQualifier() {
		return p.qualifiedGNU()
	}
	switch c {
	case 'r', 'V', 'K':
		return p.qualified()
	case 'S':
		return p.typeS()
	case 'D':
		return p.typeD()
	case 'T':
		return p.typeT()
	}
	n := p.compound(c)
	return p.substitutable(n)
}

// compound reads a type that begins with a letter that says it all.
func (p *parser) compound(c byte) *node {
	switch c {
	case 'P':
		return p.modified(kindPointer)
	case 'R':
		return p.modified(kindReference)
	case 'O':
		return p.modified(kindRvalue)
	case 'C':
		return p.modified(kindComplex)
	case 'G':
		return p.modified(kindImaginary)
	case 'F':
		return p.functionType()
	case 'A':
		return p.array()
	case 'M':
		p.at++
		class := p.typ()
		member := p.typ()
		return p.node(node{kind: kindMember, a: class, b: member, shape: member.shape &^ (isArray | isFunction)})
	case 'U':
		return p.vendorQualified()
	case 'u':
		p.at++
		n := p.node(node{kind: kindVendor, text: p.identifier()})
		if !p.isGNU() && p.take("I") {
			n.a = p.typ()
			p.expect("E")
		}
		return n
	}
	return p.anyName(nil)
}

// modified reads a type behind a letter that makes another one of it.
func (p *parser) modified(k kind) *node {
	p.at++
	base := p.typ()
	n := p.node(node{kind: k, a: base})
	if k != kindComplex && k != kindImaginary {
		n.shape = base.shape &^ (isArray | isFunction)
	}
	return n
}

// qualified reads a type with qualifiers, as LLVM does.
func (p *parser) qualified() *node {
	i := 0
	for _, c := range []byte("rVK") {
		if p.peek(i) == c {
			i++
		}
	}
	if p.peek(i) == 'F' || p.peek(i) == 'D' && isException(p.peek(i+1)) {
		return p.substitutable(p.functionType())
	}
	return p.substitutable(p.qualify(p.qualifiers(), p.typ()))
}

func isException(c byte) bool { return c == 'o' || c == 'O' || c == 'w' || c == 'x' }

func (p *parser) qualify(q qualifiers, n *node) *node {
	if q&isConst != 0 {
		n = p.node(node{kind: kindConst, a: n, shape: n.shape})
	}
	if q&isVolatile != 0 {
		n = p.node(node{kind: kindVolatile, a: n, shape: n.shape})
	}
	if q&isRestrict != 0 {
		n = p.node(node{kind: kindRestrict, a: n, shape: n.shape})
	}
	return n
}

func (p *parser) qualifiers() (q qualifiers) {
	if p.take("r") {
		q |= isRestrict
	}
	if p.take("V") {
		q |= isVolatile
	}
	if p.take("K") {
		q |= isConst
	}
	return q
}

// isQualifier says whether what binutils take for a qualifier is next.
func (p *parser) isQualifier() bool {
	c := p.peek(0)
	return c == 'r' || c == 'V' || c == 'K' || c == 'D' && isException(p.peek(1))
}

// qualifierKinds and qualifierTexts are the qualifiers of one letter.
var (
	qualifierKinds = map[byte]kind{'r': kindRestrict, 'V': kindVolatile, 'K': kindConst}
	qualifierTexts = map[byte]string{'r': " restrict", 'V': " volatile", 'K': " const"}
)

// qualifiersGNU reads qualifiers, each as a node around those that follow it. Of
// functions and their names they are kindThis.
func (p *parser) qualifiersGNU(k kind) (outer, inner *node) {
	for p.isQualifier() && !p.failed {
		c := p.peek(0)
		p.at++
		n := p.node(node{kind: kindThis})
		if text, ok := qualifierTexts[c]; ok {
			n.text = text
			if k != kindThis {
				n.kind = qualifierKinds[c]
			}
		} else {
			p.exception(n)
		}
		if outer == nil {
			outer = n
		} else {
			inner.a = n
		}
		inner = n
	}
	if k != kindThis && p.peek(0) == 'F' {
		for n := outer; n != nil; n = n.a {
			n.kind = kindThis
		}
	}
	return outer, inner
}

// exception reads what a function throws, and whether it is safe in
// transactions.
func (p *parser) exception(n *node) {
	c := p.peek(0)
	p.at++
	switch c {
	case 'x':
		n.text = " transaction_safe"
	case 'o':
		n.text = " noexcept"
	case 'O':
		n.text = " noexcept"
		n.b = p.operand()
		p.expect("E")
	case 'w':
		n.text = " throw"
		n.b = p.node(node{kind: kindArguments, list: p.parametersGNU()})
		p.expect("E")
	}
}

// wrap puts qualifiers around what they qualify.
func (p *parser) wrap(outer, inner, n *node) *node {
	if outer == nil {
		return n
	}
	inner.a = n
	return outer
}

// qualifiedGNU reads what qualified does, as binutils do.
func (p *parser) qualifiedGNU() *node {
	outer, inner := p.qualifiersGNU(kindConst)
	var n *node
	if p.peek(0) == 'F' {
		n = p.functionType()
	} else {
		n = p.typ()
	}
	if n.kind == kindThis && (n.text == " &" || n.text == " &&") {
		// What a function refers to is written behind its qualifiers.
		reference := p.node(*n)
		reference.a = p.wrap(outer, inner, n.a)
		return p.substitutable(reference)
	}
	return p.substitutable(p.wrap(outer, inner, n))
}

// functionType reads the type of a function (5.1.5.3).
func (p *parser) functionType() *node {
	if p.isGNU() {
		p.expect("F")
		p.take("Y")
		n := p.function(true)
		switch {
		case p.take("R"):
			n = p.node(node{kind: kindThis, text: " &", a: n})
		case p.take("O"):
			n = p.node(node{kind: kindThis, text: " &&", a: n})
		}
		p.expect("E")
		return n
	}
	n := p.node(node{kind: kindFunction, quals: p.qualifiers(), shape: hasRight | isFunction})
	switch {
	case p.take("Do"):
		n.b = p.name("noexcept")
	case p.take("DO"):
		n.b = p.node(node{kind: kindExceptions, a: p.expression()})
		p.expect("E")
	case p.take("Dw"):
		n.b = p.node(node{kind: kindExceptions})
		for !p.isEnd("E") {
			n.b.list = append(n.b.list, p.typ())
		}
	}
	p.take("Dx")
	p.expect("F")
	p.take("Y")
	n.a = p.typ()
	for !p.isEnd("E") {
		switch {
		case p.take("v"):
			continue
		case p.take("RE"):
			n.quals |= isLvalue
			return n
		case p.take("OE"):
			n.quals |= isRvalue
			return n
		}
		n.list = append(n.list, p.typ())
	}
	return n
}

func (p *parser) array() *node {
	p.at++
	n := p.node(node{kind: kindArray, shape: hasRight | isArray})
	switch c := p.peek(0); {
	case isDigit(c):
		n.a = p.name(p.digits(false))
	case c != '_':
		n.a = p.operand()
	}
	p.expect("_")
	n.b = p.typ()
	return n
}

// vendorQualified reads a type behind a qualifier of a vendor.
func (p *parser) vendorQualified() *node {
	if p.isGNU() {
		p.at++
		name := p.sourceName()
		n := p.node(node{kind: kindVendorQualifier, text: name.text})
		if p.peek(0) == 'I' {
			n.b = p.arguments(false)
		}
		n.a = p.typ()
		return n
	}
	return p.qualifiedByVendor()
}

// qualifiedByVendor reads qualifiers of vendors, then those of C++.
func (p *parser) qualifiedByVendor() *node {
	p.enter()
	defer p.leave()
	if !p.take("U") {
		return p.qualify(p.qualifiers(), p.typ())
	}
	n := p.node(node{kind: kindVendorQualifier, text: p.identifier()})
	if rest, ok := strings.CutPrefix(n.text, "objcproto"); ok {
		inner := newParser(rest, p.reading)
		n.kind, n.text = kindProtocol, inner.identifier()
		if inner.failed {
			return p.fail()
		}
	} else if p.peek(0) == 'I' {
		n.b = p.arguments(false)
	}
	n.a = p.qualifiedByVendor()
	return n
}

// typeS reads a type that begins with a reference back.
func (p *parser) typeS() *node {
	if p.peek(1) == 't' {
		return p.substitutable(p.anyName(nil))
	}
	var n *node
	if p.isGNU() {
		n = p.substitution()
		if n.kind == kindModule {
			var scope *node
			n = p.unqualifiedName(nil, &scope, n)
			p.substitutable(n)
		}
		if p.peek(0) != 'I' {
			return n
		}
		return p.substitutable(p.template(n, p.arguments(false)))
	}
	n, isSub := p.unscopedName(nil)
	switch {
	case p.peek(0) == 'I' && (!isSub || !p.hasNoArguments || p.reading == readABI):
		if !isSub {
			p.substitutable(n)
		}
		n = p.template(n, p.arguments(false))
	case isSub:
		return n
	}
	return p.substitutable(n)
}

// elaborated are the words before names of types, by their letters.
var elaborated = [256]string{'s': "struct", 'u': "union", 'e': "enum"}

// typeT reads a template parameter, or one that is a template, with arguments.
func (p *parser) typeT() *node {
	if text := elaborated[p.peek(1)]; text != "" {
		p.at += 2
		if p.isGNU() {
			return p.fail()
		}
		return p.substitutable(p.node(node{kind: kindElaborated, text: text, a: p.anyName(nil)}))
	}
	n := p.templateParameter()
	if p.peek(0) != 'I' || p.hasNoArguments {
		return p.substitutable(n)
	}
	if p.isGNU() && p.isConversion {
		// Are the arguments those of the type, or of the operator?
		saved := *p
		arguments := p.arguments(false)
		if p.failed || p.peek(0) != 'I' {
			nodes := p.nodes
			*p = saved
			p.nodes = nodes
			return p.substitutable(n)
		}
		saved.subs = append(saved.subs[:len(saved.subs):len(saved.subs)], n)
		p.subs = append(saved.subs, p.subs[len(saved.subs)-1:]...)
		return p.substitutable(p.template(n, arguments))
	}
	p.substitutable(n)
	return p.substitutable(p.template(n, p.arguments(false)))
}

// typeD reads a type that begins with D.
func (p *parser) typeD() *node {
	c := p.peek(1)
	if text := builtinsD[c]; text != "" {
		p.at += 2
		if c == 'n' && p.isGNU() {
			text = "decltype(nullptr)"
		}
		return p.node(node{kind: kindBuiltin, text: text})
	}
	switch c {
	case 't', 'T':
		return p.substitutable(p.decltype())
	case 'p':
		p.at += 2
		return p.substitutable(p.node(node{kind: kindExpansion, a: p.typ()}))
	case 'v':
		p.at += 2
		return p.substitutable(p.vector())
	case 'F':
		p.at += 2
		return p.floating()
	case 'B', 'U':
		if !p.isGNU() {
			p.at += 2
			return p.bitInt(c)
		}
	case 'A', 'R', 'S':
		if !p.isGNU() {
			p.at++
			return p.fixedPoint()
		}
	case 'k', 'K':
		if p.isGNU() {
			break
		}
		p.at += 2
		text := " auto"
		if c == 'K' {
			text = " decltype(auto)"
		}
		return p.node(node{kind: kindPostfix, a: p.anyName(nil), text: text})
	case 'o', 'O', 'w', 'x':
		if !p.isGNU() {
			return p.substitutable(p.functionType())
		}
	}
	return p.fail()
}

func (p *parser) decltype() *node {
	p.at += 2
	n := p.node(node{kind: kindDecltype, a: p.operand()})
	p.expect("E")
	return n
}

func (p *parser) vector() *node {
	n := p.node(node{kind: kindVector})
	switch {
	case isDigit(p.peek(0)):
		n.a = p.name(p.digits(false))
		p.expect("_")
		if !p.isGNU() && p.take("p") {
			n.text = "pixel"
			return n
		}
	case p.isGNU():
		p.expect("_")
		n.a = p.operand()
		p.expect("_")
	case !p.take("_"):
		n.a = p.expression()
		p.expect("_")
	}
	n.b = p.typ()
	return n
}

// fixedPoint reads a fixed point type behind its D.
func (p *parser) fixedPoint() *node {
	text := ""
	if p.take("SD") {
		text = "_Sat "
	}
	name := map[byte]string{'A': "_Accum", 'R': "_Fract"}[p.peek(0)]
	size, ok := map[byte]string{'s': "short ", 't': "unsigned short ", 'i': "", 'j': "unsigned ", 'l': "long ", 'm': "unsigned long "}[p.peek(1)]
	if name == "" || !ok {
		return p.fail()
	}
	p.at += 2
	return p.node(node{kind: kindFixed, text: text + size + name})
}

// floating reads a floating point type of a number of bits.
func (p *parser) floating() *node {
	bits := p.digits(false)
	switch {
	case bits == "":
	case p.take("_"):
		return p.node(node{kind: kindFixed, text: "_Float" + bits})
	case p.take("x") && p.isGNU():
		return p.node(node{kind: kindFixed, text: "_Float" + bits + "x"})
	case bits == "16" && p.take("b"):
		return p.node(node{kind: kindFixed, text: "std::bfloat16_t"})
	}
	return p.fail()
}

func (p *parser) bitInt(c byte) *node {
	n := p.node(node{kind: kindBitInt})
	if c == 'U' {
		n.text = "unsigned "
	}
	if isDigit(p.peek(0)) {
		n.a = p.name(p.digits(false))
	} else {
		n.a = p.operand()
	}
	p.expect("_")
	return p.substitutable(n)
}
