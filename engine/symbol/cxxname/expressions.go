// SPDX-License-Identifier: Apache-2.0

package cxxname

// operand reads an expression in a type.
func (p *parser) operand() *node {
	was := p.isExpression
	p.isExpression = true
	n := p.expression()
	p.isExpression = was
	return n
}

// expression reads an expression (ABI 5.1.6).
func (p *parser) expression() *node {
	p.enter()
	defer p.leave()
	defer func(was bool) { p.isExpression = was }(p.isExpression)
	p.isExpression = true
	if n := p.leaf(); n != nil {
		return n
	}
	global := !p.isGNU() && p.take("gs")
	if p.isGNU() && p.take("gs") {
		return p.node(node{kind: kindGlobal, a: p.expression()})
	}
	if n := p.keyword(); n != nil {
		return n
	}
	if op := p.operator(); op != nil {
		if op.code == "cp" && p.isGNU() {
			return p.fail()
		}
		return p.operation(op, global)
	}
	if p.isGNU() {
		return p.fail()
	}
	return p.unresolvedName(global)
}

// leaf reads an expression that no operator begins; nil where none is next.
func (p *parser) leaf() *node {
	switch c := p.peek(0); {
	case c == 'L':
		return p.primary()
	case c == 'T':
		return p.templateParameter()
	case c == 'f' && p.peek(1) == 'p', c == 'f' && p.peek(1) == 'L' && isDigit(p.peek(2)) && !p.isGNU():
		return p.argument()
	case c == 'f' && p.peek(1) != 0:
		return p.fold()
	case p.isGNU() && (isDigit(c) || c == 'o' && p.peek(1) == 'n'):
		var scope *node
		n := p.unqualifiedName(nil, &scope, nil)
		if p.peek(0) == 'I' {
			n = p.template(n, p.arguments(false))
		}
		return n
	case p.isGNU() && c == 's' && p.peek(1) == 'r':
		return p.unresolvedGNU()
	case c == 'u':
		p.at++
		n := p.node(node{kind: kindVendorCall, text: p.identifier()})
		if n.text == "__uuidof" && !p.isGNU() && p.take("t") {
			n.list = []*node{p.typ()}
			return n
		}
		if n.text == "__uuidof" && !p.isGNU() && p.take("z") {
			n.list = []*node{p.expression()}
			return n
		}
		for !p.isEnd("E") {
			n.list = append(n.list, p.templateArgument())
		}
		return n
	}
	return nil
}

// keyword reads an expression of two letters that is not an operator; nil where
// none is next.
func (p *parser) keyword() *node {
	switch {
	case p.take("il"):
		return p.initializers(nil)
	case p.take("tl"):
		return p.initializers(p.typ())
	case !p.isGNU() && p.take("nx"): // binutils 2.40 do not know it
		return p.node(node{kind: kindNoexcept, a: p.expression()})
	case p.take("sp"):
		return p.node(node{kind: kindExpansion, a: p.expression()})
	case p.take("sZ"):
		if c := p.peek(0); !p.isGNU() && c != 'T' && c != 'f' {
			return p.fail()
		}
		return p.node(node{kind: kindSizeofPack, a: p.expression()})
	case p.take("sP"):
		n := p.node(node{kind: kindSizeofArgs})
		for !p.isEnd("E") {
			n.list = append(n.list, p.templateArgument())
		}
		return n
	case p.take("tr"):
		return p.node(node{kind: kindName, flag: true, text: "throw"})
	case p.take("tw"):
		return p.node(node{kind: kindThrow, a: p.expression()})
	case p.isGNU():
		return p.designator()
	case p.take("mc"):
		n := p.node(node{kind: kindMemberCast, a: p.typ()})
		n.b = p.expression()
		p.digits(true)
		p.expect("E")
		return n
	case p.take("so"):
		return p.subobject()
	case p.take("rq"):
		return p.requires(false)
	case p.take("rQ"):
		return p.requires(true)
	}
	return nil
}

// initializers reads a list in braces.
func (p *parser) initializers(t *node) *node {
	n := p.node(node{kind: kindList, a: t})
	for !p.isEnd("E") {
		n.list = append(n.list, p.initializer())
	}
	return n
}

// initializer reads an element of such a list.
func (p *parser) initializer() *node {
	p.enter()
	defer p.leave()
	if n := p.designator(); n != nil {
		return n
	}
	return p.expression()
}

// designator reads an element that says what it initializes; nil where it does
// not.
func (p *parser) designator() *node {
	switch {
	case p.take("di"):
		var field *node
		if p.isGNU() {
			var scope *node
			field = p.unqualifiedName(nil, &scope, nil)
		} else {
			field = p.sourceName()
		}
		return p.node(node{kind: kindDesignator, a: field, b: p.initializer()})
	case p.take("dx"):
		index := p.expression()
		return p.node(node{kind: kindDesignator, flag: true, a: index, b: p.initializer()})
	case p.take("dX"):
		from := p.expression()
		to := p.expression()
		return p.node(node{kind: kindDesignatorRange, a: from, c: to, b: p.initializer()})
	}
	return nil
}

// operation reads the operands of an operator.
func (p *parser) operation(op *operator, global bool) *node {
	switch op.kind {
	case operatorPrefix:
		return p.node(node{kind: kindUnary, op: op, prec: op.prec, a: p.expression()})
	case operatorPostfix:
		behind := !p.take("_")
		return p.node(node{kind: kindUnary, op: op, prec: op.prec, flag: behind, a: p.expression()})
	case operatorBinary, operatorIndex:
		left := p.expression()
		return p.node(node{kind: kindBinary, op: op, prec: op.prec, a: left, b: p.expression()})
	case operatorMember:
		left := p.expression()
		return p.node(node{kind: kindBinary, op: op, prec: op.prec, a: left, b: p.memberName(op)})
	case operatorCall:
		n := p.node(node{kind: kindCall, prec: op.prec, flag: op.code == "cp", a: p.expression()})
		n.list = p.expressions("E")
		return n
	case operatorConditional:
		a := p.expression()
		b := p.expression()
		return p.node(node{kind: kindTernary, op: op, prec: op.prec, a: a, b: b, c: p.expression()})
	case operatorNamedCast:
		to := p.typ()
		return p.node(node{kind: kindNamedCast, op: op, prec: op.prec, a: to, b: p.expression()})
	case operatorOf:
		return p.node(node{kind: kindUnary, op: op, prec: op.prec, a: p.expression()})
	case operatorOfAny:
		if p.isGNU() && op.code != "st" {
			return p.node(node{kind: kindUnary, op: op, a: p.expression()})
		}
		return p.node(node{kind: kindOfType, op: op, prec: op.prec, a: p.typ()})
	case operatorDelete:
		return p.node(node{kind: kindDelete, op: op, prec: op.prec, flag: global, a: p.expression()})
	case operatorNew:
		return p.allocation(op, global)
	}
	return p.cast(op)
}

func (p *parser) expressions(end string) []*node {
	var list []*node
	for !p.isEnd(end) {
		list = append(list, p.expression())
	}
	return list
}

// memberName reads what is behind a point or an arrow.
func (p *parser) memberName(op *operator) *node {
	if !p.isGNU() || op.prec != precPostfix || p.has("gs") || p.has("sr") {
		return p.expression()
	}
	var scope *node
	n := p.unqualifiedName(nil, &scope, nil)
	if p.peek(0) == 'I' {
		n = p.template(n, p.arguments(false))
	}
	return n
}

// allocation reads a new expression.
func (p *parser) allocation(op *operator, global bool) *node {
	n := p.node(node{kind: kindNew, op: op, prec: op.prec, flag: global})
	n.list = p.expressions("_")
	n.a = p.typ()
	switch {
	case p.take("E"):
	case p.take("pi"):
		n.b = p.node(node{kind: kindArguments, list: p.expressions("E")})
	case p.isGNU() && p.has("il"):
		n.b = p.expression()
	default:
		p.fail()
	}
	return n
}

// cast reads a cast in the manner of C.
func (p *parser) cast(op *operator) *node {
	n := p.node(node{kind: kindCast, prec: op.prec})
	if p.isGNU() {
		was := p.isConversion
		p.isConversion = false
		n.a = p.typ()
		p.isConversion = was
	} else {
		was := p.hasNoArguments
		p.hasNoArguments = true
		n.a = p.typ()
		p.hasNoArguments = was
	}
	if n.flag = p.take("_"); n.flag {
		n.list = p.expressions("E")
	} else {
		n.list = []*node{p.expression()}
	}
	return n
}

// argument reads a parameter of the function around an expression.
func (p *parser) argument() *node {
	switch {
	case p.take("fpT"):
		return p.node(node{kind: kindArgument, text: "this"})
	case p.take("fp"):
		if p.isGNU() {
			return p.node(node{kind: kindArgument, num: p.compact() + 1})
		}
	default:
		p.at += 2
		p.digits(false)
		p.expect("p")
	}
	p.qualifiers()
	n := p.node(node{kind: kindArgument, text: "fp" + p.digits(false)})
	p.expect("_")
	return n
}

// fold reads a fold expression.
func (p *parser) fold() *node {
	c := p.peek(1)
	if c != 'l' && c != 'r' && c != 'L' && c != 'R' {
		return p.fail()
	}
	p.at += 2
	n := p.node(node{kind: kindFold, flag: c == 'l' || c == 'L', op: p.operator()})
	if n.op == nil || n.op.kind != operatorBinary && (n.op.kind != operatorMember || n.op.prec != precMember) {
		return p.fail()
	}
	n.a = p.expression()
	if c == 'L' || c == 'R' {
		n.b = p.expression()
		if n.flag {
			n.a, n.b = n.b, n.a
		}
	}
	return n
}

func (p *parser) subobject() *node {
	n := p.node(node{kind: kindSubobject, a: p.typ()})
	n.b = p.expression()
	n.text = p.digits(true)
	for p.take("_") {
		p.digits(false)
	}
	p.take("p")
	p.expect("E")
	return n
}

// requires reads a requires expression.
func (p *parser) requires(parameters bool) *node {
	n := p.node(node{kind: kindRequires})
	for parameters && !p.isEnd("_") {
		n.list = append(n.list, p.typ())
	}
	for first := true; first || !p.isEnd("E"); first = false {
		var r node
		switch {
		case p.take("X"):
			r = node{kind: kindRequirement, a: p.expression(), flag: p.take("N")}
			if p.take("R") {
				r.b = p.anyName(nil)
			}
		case p.take("T"):
			r = node{kind: kindTypeRequirement, a: p.typ()}
		case p.take("Q"):
			r = node{kind: kindNested, a: p.constraint()}
		default:
			return p.fail()
		}
		n.decls = append(n.decls, p.node(r))
	}
	return n
}

// unresolvedName reads a name that depends on template parameters (5.1.6.3).
func (p *parser) unresolvedName(global bool) *node {
	var scope *node
	switch {
	case p.take("srN"):
		scope = p.scopeWithArguments()
		for !p.isEnd("E") {
			scope = p.node(node{kind: kindQualified, a: scope, b: p.simpleName()})
		}
	case p.take("sr"):
		if !isDigit(p.peek(0)) {
			scope = p.scopeWithArguments()
			break
		}
		for first := true; first || !p.isEnd("E"); first = false {
			part := p.simpleName()
			switch {
			case !first:
				scope = p.node(node{kind: kindQualified, a: scope, b: part})
			case global:
				scope = p.node(node{kind: kindGlobal, a: part})
			default:
				scope = part
			}
		}
	default:
		n := p.unresolvedBase()
		if global {
			n = p.node(node{kind: kindGlobal, a: n})
		}
		return n
	}
	return p.node(node{kind: kindQualified, a: scope, b: p.unresolvedBase()})
}

func (p *parser) scopeWithArguments() *node {
	n := p.unresolvedType()
	if p.peek(0) == 'I' {
		n = p.template(n, p.arguments(false))
	}
	return n
}

func (p *parser) unresolvedType() *node {
	switch c := p.peek(0); {
	case c == 'T':
		return p.substitutable(p.templateParameter())
	case c == 'D':
		return p.substitutable(p.decltype())
	case c == 'S' && p.peek(1) != 't':
		return p.substitution()
	case p.reading == readABI:
		return p.typ() // gcc writes any type here
	}
	return p.fail()
}

// simpleName reads an identifier with its template arguments.
func (p *parser) simpleName() *node {
	n := p.sourceName()
	if p.peek(0) == 'I' {
		n = p.template(n, p.arguments(false))
	}
	return n
}

func (p *parser) unresolvedBase() *node {
	switch {
	case isDigit(p.peek(0)):
		return p.simpleName()
	case p.take("dn"):
		if isDigit(p.peek(0)) {
			return p.node(node{kind: kindDestructor, a: p.simpleName(), flag: true})
		}
		return p.node(node{kind: kindDestructor, a: p.unresolvedType(), flag: true})
	}
	p.take("on")
	n := p.operatorName(nil)
	if p.peek(0) == 'I' {
		n = p.template(n, p.arguments(false))
	}
	return n
}

// unresolvedGNU reads a qualified name, as binutils do: as the ABI has it, and as
// older compilers wrote it where that fails.
func (p *parser) unresolvedGNU() *node {
	p.at += 2
	var scope *node
	c := p.peek(0)
	if !p.hasOldScopes && (isDigit(c) || isLower(c) || c == 'C' || c == 'U' || c == 'L') {
		p.hasTriedScopes = true
		scope = p.prefix(false)
		p.take("E")
	} else {
		scope = p.typ()
	}
	n := p.unqualifiedName(nil, &scope, nil)
	if p.peek(0) == 'I' {
		n = p.template(n, p.arguments(false))
	}
	return n
}

// literalSuffixes are those of integers that are written without their type.
var literalSuffixes = map[string]string{
	"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll", "unsigned long long": "ull",
}

// primary reads a literal or the name of a function or an object (5.1.6.4).
func (p *parser) primary() *node {
	p.expect("L")
	if p.isGNU() {
		return p.primaryGNU()
	}
	c := p.peek(0)
	switch {
	case c == '_':
		p.expect("_Z")
		n := p.encoding(false)
		p.expect("E")
		return n
	case c == 'b':
		p.at++
		text := map[byte]string{'0': "false", '1': "true"}[p.peek(0)]
		if p.at++; text == "" || p.at > len(p.text) {
			return p.fail()
		}
		p.expect("E")
		return p.node(node{kind: kindBool, text: text})
	case c == 'f' || c == 'd' || c == 'e':
		return p.float(c)
	case c == 'A':
		t := p.typ()
		p.expect("E")
		return p.node(node{kind: kindString, a: t})
	case p.take("Dn"):
		p.take("0")
		p.expect("E")
		return p.node(node{kind: kindNullptr, text: "nullptr"})
	case c == 'T', c == 'U' && p.peek(1) != 'l':
		return p.fail()
	case c == 'U':
		t := p.unnamed(nil)
		p.expect("E")
		return p.node(node{kind: kindLambdaOf, a: t})
	}
	t := p.typ()
	text := p.digits(true)
	if text == "" {
		return p.fail()
	}
	p.expect("E")
	return p.literal(t, text)
}

func (p *parser) literal(t *node, text string) *node {
	n := p.node(node{kind: kindLiteral, a: t})
	if text != "" && text[0] == 'n' {
		n.flag = true
		text = text[1:]
	}
	n.text = text
	return n
}

// float reads a floating point number as its bytes in hexadecimal digits.
func (p *parser) float(c byte) *node {
	n := p.node(node{kind: kindFloat, sub: c, a: p.typ()})
	size := map[byte]int{'f': 8, 'd': 16, 'e': 20}[c]
	if len(p.text)-p.at <= size {
		return p.fail()
	}
	n.text = p.text[p.at : p.at+size]
	for i := range size {
		if d := n.text[i]; !isDigit(d) && (d < 'a' || d > 'f') {
			return p.fail()
		}
	}
	p.at += size
	p.expect("E")
	return n
}

// primaryGNU is primary behind the L as binutils read it.
func (p *parser) primaryGNU() *node {
	if c := p.peek(0); c == '_' || c == 'Z' {
		p.take("_")
		p.expect("Z")
		n := p.encoding(false)
		p.expect("E")
		return n
	}
	t := p.typ()
	if t.kind == kindBuiltin && t.text == "decltype(nullptr)" && p.take("E") {
		return t
	}
	from := p.at
	for p.peek(0) != 'E' && p.peek(0) != 0 {
		p.at++
	}
	text := p.text[from:p.at]
	p.expect("E")
	n := p.literal(t, text)
	if n.text == "" {
		return p.fail()
	}
	return n
}
