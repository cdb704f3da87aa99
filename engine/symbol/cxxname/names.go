// SPDX-License-Identifier: Apache-2.0

package cxxname

import "strings"

// anyName reads a name (ABI 5.1.3). The state is nil where the name is not that
// of an encoding.
func (p *parser) anyName(s *state) *node {
	p.enter()
	defer p.leave()
	switch p.peek(0) {
	case 'N':
		return p.nestedName(s)
	case 'Z':
		return p.localName(s)
	}
	n, isSub := p.unscopedName(s)
	if p.peek(0) == 'I' {
		if !isSub {
			p.substitutable(n)
		}
		n = p.template(n, p.arguments(s != nil))
		if s != nil {
			s.hasArguments = true
		}
	} else if isSub && !p.isGNU() {
		return p.fail()
	}
	return n
}

func (p *parser) template(name, arguments *node) *node {
	return p.node(node{kind: kindTemplate, a: name, b: arguments})
}

// unscopedName reads a name that is in no scope or in std, or a reference back.
func (p *parser) unscopedName(s *state) (n *node, isSub bool) {
	var scope, module *node
	switch {
	case p.take("St"):
		scope = p.name("std")
	case p.peek(0) == 'S':
		if n = p.substitution(); n.kind != kindModule {
			return n, true
		}
		module = n
	}
	return p.unqualifiedName(s, &scope, module), false
}

// localName reads a name in a function (5.1.7).
func (p *parser) localName(s *state) *node {
	p.expect("Z")
	n := p.node(node{kind: kindLocal, a: p.encoding(false)})
	p.expect("E")
	if p.take("s") {
		n.b = p.name("string literal")
		p.discriminator()
		return n
	}
	if !p.isGNU() {
		if p.reading != readABI || s == nil {
			defer p.restoreLevels(p.levels, p.outer)
		}
		p.levels, p.outer = nil, &parameters{}
	}
	number := -1
	if p.take("d") {
		number = p.compact()
	}
	n.b = p.anyName(s)
	switch {
	case !p.isGNU() && number < 0, p.isGNU() && n.b.kind != kindLambda && n.b.kind != kindUnnamed:
		p.discriminator()
	}
	if p.isGNU() {
		if number >= 0 {
			n.b = p.node(node{kind: kindDefaultArgument, num: number, b: n.b})
		}
		if f := n.a; f.kind == kindEncoding && f.b.kind == kindFunction {
			f.b.a = nil // it would be taken for the result of what is in the function
		}
	}
	return n
}

// discriminator passes over the number of a local name among those of the same
// name.
func (p *parser) discriminator() {
	from := p.at
	switch {
	case p.take("__"):
		if p.isGNU() {
			if len(p.digits(false)) > 1 {
				p.expect("_")
			}
			return
		}
		if p.digits(false) == "" || !p.take("_") {
			p.at = from
		}
	case p.take("_"):
		if p.isGNU() {
			p.digits(false)
		} else if isDigit(p.peek(0)) {
			p.at++
		} else {
			p.at = from
		}
	case !p.isGNU() && isDigit(p.peek(0)):
		for isDigit(p.peek(0)) {
			p.at++
		}
		if p.at < len(p.text) {
			p.at = from
		}
	}
}

// nestedName reads a name in scopes (5.1.3).
func (p *parser) nestedName(s *state) *node {
	p.expect("N")
	if p.isGNU() {
		outer, inner := p.qualifiersGNU(kindThis)
		var reference *node
		if c := p.peek(0); c == 'R' || c == 'O' {
			p.at++
			reference = p.node(node{kind: kindThis, text: map[byte]string{'R': " &", 'O': " &&"}[c]})
		}
		n := p.wrap(outer, inner, p.prefix(true))
		if reference != nil {
			reference.a = n
			n = reference
		}
		p.expect("E")
		return n
	}
	if p.take("H") {
		if s != nil {
			s.hasThis = true
		}
	} else {
		quals := p.qualifiers()
		if p.take("O") {
			quals |= isRvalue
		} else if p.take("R") {
			quals |= isLvalue
		}
		if s != nil {
			s.quals = quals
		}
	}
	return p.scopes(s)
}

// scopes reads the scopes and the name of a nested name, as LLVM does.
func (p *parser) scopes(s *state) *node {
	var n *node
	for !p.isEnd("E") {
		if s != nil {
			s.hasArguments = false
		}
		switch c := p.peek(0); {
		case c == 'T':
			if n != nil {
				return p.fail()
			}
			n = p.templateParameter()
		case c == 'I':
			if n == nil || n.kind == kindTemplate {
				return p.fail()
			}
			n = p.template(n, p.arguments(s != nil))
			if s != nil {
				s.hasArguments = true
			}
		case c == 'D' && (p.peek(1) == 't' || p.peek(1) == 'T'):
			if n != nil {
				return p.fail()
			}
			n = p.decltype()
		default:
			var module *node
			if c == 'S' {
				var sub *node
				if p.take("St") {
					sub = p.name("std")
				} else {
					sub = p.substitution()
				}
				if sub.kind != kindModule {
					if n != nil {
						return p.fail()
					}
					n = sub
					continue
				}
				module = sub
			}
			n = p.unqualifiedName(s, &n, module)
		}
		p.substitutable(n)
		p.take("M")
	}
	if n == nil || len(p.subs) == 0 {
		return p.fail()
	}
	p.subs = p.subs[:len(p.subs)-1]
	return n
}

// prefix reads scopes and a name, as binutils do.
func (p *parser) prefix(substitutable bool) *node {
	var n *node
	for !p.failed {
		switch c := p.peek(0); {
		case c == 'D' && (p.peek(1) == 't' || p.peek(1) == 'T'):
			if n != nil {
				return p.fail()
			}
			n = p.typ()
		case c == 'I':
			if n == nil {
				return p.fail()
			}
			n = p.template(n, p.arguments(false))
		case c == 'T':
			if n != nil {
				return p.fail()
			}
			n = p.templateParameter()
		case c == 'M':
			p.at++
			continue
		default:
			var module *node
			if c == 'S' {
				sub := p.substitution()
				if sub.kind != kindModule {
					if n != nil {
						return p.fail()
					}
					n = sub
					if p.peek(0) == 'E' {
						return n
					}
					continue
				}
				module = sub
			}
			n = p.unqualifiedName(nil, &n, module)
		}
		if p.peek(0) == 'E' {
			break
		}
		if substitutable {
			p.substitutable(n)
		}
	}
	return n
}

// unqualifiedName reads a name (5.1.3.2), in a scope if that is not nil.
func (p *parser) unqualifiedName(s *state, scope **node, module *node) *node {
	module = p.module(module)
	friend := *scope != nil && !p.isGNU() && p.take("F")
	var n *node
	switch c := p.peek(0); {
	case c == 'L' && p.isGNU():
		p.at++
		n = p.sourceName()
		p.discriminator()
	case isDigit(c), c == 'L' && isDigit(p.peek(1)):
		p.take("L")
		n = p.sourceName()
	case c == 'U':
		n = p.unnamed(s)
	case p.take("DC"):
		n = p.node(node{kind: kindBindings})
		for first := true; first || !p.isEnd("E"); first = false {
			n.list = append(n.list, p.sourceName())
		}
	case c == 'C' || c == 'D':
		if !p.isGNU() && (*scope == nil || module != nil) {
			return p.fail()
		}
		n = p.constructor(s, scope)
	default:
		p.take("L")
		n = p.operatorName(s)
	}
	if module != nil {
		n = p.node(node{kind: kindModuleEntity, a: n, b: module})
	}
	n = p.tags(n)
	switch {
	case friend:
		return p.node(node{kind: kindFriend, a: *scope, b: n})
	case *scope != nil:
		return p.node(node{kind: kindQualified, a: *scope, b: n})
	}
	return n
}

// module reads the modules that an entity is of; nil where there are none.
func (p *parser) module(parent *node) *node {
	for p.take("W") {
		partition := p.take("P")
		parent = p.substitutable(p.node(node{kind: kindModule, a: parent, flag: partition, b: p.sourceName()}))
	}
	return parent
}

// sourceName reads an identifier.
func (p *parser) sourceName() *node {
	text := p.identifier()
	if strings.HasPrefix(text, "_GLOBAL_") && len(text) > 9 && (text[8] == '_' || p.isGNU() && (text[8] == '.' || text[8] == '$')) && text[9] == 'N' {
		text = "(anonymous namespace)"
	}
	n := p.name(text)
	p.last = n
	return n
}

// tags reads the ABI tags of a name.
func (p *parser) tags(n *node) *node {
	last := p.last
	for p.take("B") {
		n = p.node(node{kind: kindTagged, a: n, text: p.identifier()})
	}
	p.last = last
	return n
}

// constructor reads a constructor or a destructor (5.1.4.3).
func (p *parser) constructor(s *state, scope **node) *node {
	var of *node
	if p.isGNU() {
		of = p.last
		if of == nil {
			return p.fail()
		}
	} else {
		if c := *scope; c.kind == kindStd && c.sub != 'a' && c.sub != 'b' {
			full := *c
			full.flag = true
			*scope = p.node(full)
		}
		of = *scope
	}
	if p.take("C") {
		inherited := p.take("I")
		if c := p.peek(0); c < '1' || c > '5' {
			return p.fail()
		}
		p.at++
		if inherited && p.isGNU() {
			p.typ()
			of = p.last // binutils name the base class
		} else if inherited {
			p.anyName(s)
		}
		if s != nil {
			s.isConversion = true
		}
		return p.node(node{kind: kindConstructor, a: of})
	}
	p.at++
	if c := p.peek(0); c != '0' && c != '1' && c != '2' && c != '4' && c != '5' {
		return p.fail()
	}
	p.at++
	if s != nil {
		s.isConversion = true
	}
	return p.node(node{kind: kindDestructor, a: of})
}

// unnamed reads a closure, a type without a name (5.1.9), or a block.
func (p *parser) unnamed(s *state) *node {
	if s != nil && !p.isGNU() {
		p.levels = nil
	}
	switch {
	case p.take("Ut"):
		n := p.node(node{kind: kindUnnamed})
		p.unnamedNumber(n)
		if p.isGNU() {
			p.substitutable(n)
		}
		return n
	case p.take("Ul"):
		if p.isGNU() {
			return p.lambdaGNU()
		}
		return p.lambda()
	case p.take("Ub") && !p.isGNU():
		p.digits(false)
		p.expect("_")
		return p.node(node{kind: kindBlock, text: "'block-literal'"})
	}
	return p.fail()
}

// unnamedNumber reads the number of a type without a name. LLVM writes it as it
// is mangled, binutils count from one.
func (p *parser) unnamedNumber(n *node) {
	if p.isGNU() {
		n.num = p.compact()
		return
	}
	n.text = p.digits(false)
	p.expect("_")
}

// substitution reads a reference back or an abbreviation of std (5.1.10).
func (p *parser) substitution() *node {
	p.expect("S")
	c := p.peek(0)
	if isLower(c) {
		p.at++
		return p.abbreviation(c)
	}
	index, ok := p.sequence()
	if ok {
		index++
	}
	p.expect("_")
	if p.failed || index >= len(p.subs) {
		return p.fail()
	}
	if p.reading == readABI {
		return p.rebind(p.subs[index])
	}
	return p.subs[index]
}

// stdNames are the names that the abbreviations stand for, and of what they are
// instances.
var stdNames = map[byte]struct{ short, long, arguments string }{
	't': {"", "", ""},
	'a': {"allocator", "allocator", ""},
	'b': {"basic_string", "basic_string", ""},
	's': {"string", "basic_string", ", std::allocator<char>"},
	'i': {"istream", "basic_istream", ""},
	'o': {"ostream", "basic_ostream", ""},
	'd': {"iostream", "basic_iostream", ""},
}

func (p *parser) abbreviation(c byte) *node {
	name, ok := stdNames[c]
	if !ok || c == 't' && p.reading == readLLVM {
		return p.fail()
	}
	if c == 't' {
		return p.name("std")
	}
	n := p.node(node{kind: kindStd, sub: c})
	if p.isGNU() {
		p.last = p.name(name.long)
	}
	if p.peek(0) == 'B' {
		n = p.substitutable(p.tags(n))
	}
	return n
}

// operatorName reads the name of an operator that is a function (5.1.5).
func (p *parser) operatorName(s *state) *node {
	switch {
	case p.take("li"):
		return p.node(node{kind: kindUserLiteral, a: p.sourceName()})
	case p.peek(0) == 'v' && isDigit(p.peek(1)):
		p.at += 2
		return p.node(node{kind: kindVendorOperator, a: p.sourceName()})
	case p.isGNU() && !isLower(p.peek(0)):
		return p.fail()
	case p.isGNU() && p.take("on"):
		defer func(was bool) { p.isExpression = was }(p.isExpression)
		p.isExpression = false
	}
	op := p.operator()
	switch {
	case op == nil:
		return p.fail()
	case op.kind == operatorCast:
		return p.conversion(s)
	case !p.isGNU() && (op.kind >= operatorNamedCast || op.isUnnamed):
		return p.fail()
	}
	return p.node(node{kind: kindOperator, op: op})
}

// operator reads the code of an operator; nil where there is none.
func (p *parser) operator() *operator {
	if len(p.text)-p.at < 2 {
		return nil
	}
	op := operators[p.text[p.at:p.at+2]]
	if op != nil {
		p.at += 2
	}
	return op
}

// conversion reads the type of a conversion operator, whose template parameters
// may stand for arguments that follow it.
func (p *parser) conversion(s *state) *node {
	if p.isGNU() {
		if p.isExpression {
			return p.fail()
		}
		was := p.isConversion
		p.isConversion = true
		n := p.node(node{kind: kindConversion, a: p.typ()})
		p.isConversion = was
		return n
	}
	noArguments, isForward := p.hasNoArguments, p.isForward
	p.hasNoArguments, p.isForward = true, isForward || s != nil
	n := p.node(node{kind: kindConversion, a: p.typ()})
	p.hasNoArguments, p.isForward = noArguments, isForward
	if s != nil {
		s.isConversion = true
	}
	return n
}
