// SPDX-License-Identifier: Apache-2.0

package cxxname

import "slices"

// What a template parameter (T_, ABI 5.1.8) stands for LLVM finds as it reads:
// levels has the arguments of the innermost template that was read with them, and
// a reference back (S0_) to a parameter is what that stood for. Binutils find
// both as they write; see gnu.go.

// templateParameter reads a template parameter.
func (p *parser) templateParameter() *node {
	from := p.at
	p.expect("T")
	if p.isGNU() {
		return p.node(node{kind: kindParameter, num: p.compact()})
	}
	level := 0
	if p.take("L") {
		level = p.compact()
	}
	index := p.compact()
	switch {
	case p.failed:
		return &p.none
	case p.isSymbolic:
		return p.name(p.text[from : p.at-1])
	case p.isForward && level == 0:
		n := p.node(node{kind: kindForward, num: index, shape: isUnknown})
		p.forwards = append(p.forwards, n)
		return n
	case level < len(p.levels) && p.levels[level] != nil && index < len(p.levels[level].list):
		scope := p.levels[level]
		if p.reading == readABI {
			return p.bound(index, scope.list[index], scope)
		}
		return scope.list[index]
	case p.lambdaLevel == level && level <= len(p.levels):
		// The parameters of a lambda that are auto are mangled as template
		// parameters.
		if level == len(p.levels) {
			p.levels = append(p.levels, nil)
		}
		if p.reading == readABI {
			return p.bound(index, p.name("auto"), nil)
		}
		return p.name("auto")
	}
	return p.fail()
}

// bound is a template parameter that remembers where it was looked up. A lambda
// has no scope.
func (p *parser) bound(index int, to *node, scope *parameters) *node {
	return p.node(node{kind: kindForward, num: index, a: to, scope: scope, shape: to.shape})
}

// rebind copies a part of a name that is referred back to, and puts the template
// parameters that are in scope here in the place of its own (ABI 5.1.10): a
// mangled name writes the parameters at one place of two templates alike.
func (p *parser) rebind(n *node) *node {
	c := copier{p: p}
	switch {
	case p.isSymbolic || p.isForward:
		return n
	case p.lambdaLevel >= 0 && p.lambdaLevel <= len(p.levels):
		c.isLambda = true
	case len(p.levels) > 0 && p.levels[0] != nil:
		c.scope = p.levels[0]
	default:
		return n
	}
	if few := 64; !mentions(n, &few) {
		return n
	}
	c.done = make(map[*node]*node)
	return c.copy(n)
}

// mentions says whether a part of a name has a template parameter in it. It is
// also true where there are more parts than are looked at.
func mentions(n *node, left *int) bool {
	if n == nil || n.kind == kindEncoding || n.kind == kindLambda || n.kind == kindPack {
		return false
	}
	if *left--; *left <= 0 || n.kind == kindForward {
		return true
	}
	if mentions(n.a, left) || mentions(n.b, left) || mentions(n.c, left) {
		return true
	}
	isMentioned := func(n *node) bool { return mentions(n, left) }
	return slices.ContainsFunc(n.list, isMentioned) || slices.ContainsFunc(n.decls, isMentioned)
}

// A copier copies what contains template parameters.
type copier struct {
	p        *parser
	scope    *parameters
	isLambda bool
	done     map[*node]*node
}

func (c *copier) copy(n *node) *node {
	if n == nil || c.p.failed {
		return n
	}
	if to, ok := c.done[n]; ok {
		return to
	}
	if c.p.copies++; c.p.copies > maxNodes {
		c.p.fail()
		return n
	}
	c.done[n] = n
	to := n
	switch n.kind {
	case kindForward:
		to = c.parameter(n)
	case kindEncoding, kindLambda, kindPack:
		// Their parameters are their own.
	default:
		to = c.copyParts(n)
	}
	c.done[n] = to
	return to
}

func (c *copier) parameter(n *node) *node {
	switch {
	case n.a == nil || n.scope == c.scope && !c.isLambda:
		return n
	case c.isLambda:
		if n.scope == nil {
			return n
		}
		return c.p.bound(n.num, c.p.name("auto"), nil)
	case n.num < len(c.scope.list):
		return c.p.bound(n.num, c.scope.list[n.num], c.scope)
	}
	return n
}

func (c *copier) copyParts(n *node) *node {
	c.p.enter()
	defer c.p.leave()
	m := *n
	m.a, m.b, m.c = c.copy(n.a), c.copy(n.b), c.copy(n.c)
	changed := m.a != n.a || m.b != n.b || m.c != n.c
	for _, list := range []*[]*node{&m.list, &m.decls} {
		for i, part := range *list {
			to := c.copy(part)
			if to == part {
				continue
			}
			changed = true
			clone := make([]*node, len(*list))
			copy(clone, *list)
			clone[i] = to
			*list = clone
		}
	}
	if !changed {
		return n
	}
	m.shape |= isUnknown
	return c.p.node(m)
}

// resolve gives the parameters that were read before their arguments their
// meaning.
func (p *parser) resolve(s *state) {
	for _, n := range p.forwards[s.forwards:] {
		if len(p.levels) == 0 || p.levels[0] == nil || n.num >= len(p.levels[0].list) {
			p.fail()
			return
		}
		n.a, n.scope = p.levels[0].list[n.num], p.levels[0]
	}
	p.forwards = p.forwards[:s.forwards]
}

// arguments reads template arguments. Where they are of the name of an encoding,
// they are what template parameters stand for from here on.
func (p *parser) arguments(own bool) *node {
	p.enter()
	defer p.leave()
	if !p.take("I") && !(p.isGNU() && p.take("J")) {
		return p.fail()
	}
	n := p.node(node{kind: kindArguments})
	if p.isGNU() {
		last := p.last
		for !p.isEnd("E") {
			n.list = append(n.list, p.templateArgument())
		}
		if len(n.list) > 0 {
			p.last = last
		}
		return n
	}
	if p.reading == readABI {
		defer func(was bool) { p.hasNoArguments = was }(p.hasNoArguments)
		p.hasNoArguments = false
	}
	if own {
		p.outer = &parameters{}
		p.levels = []*parameters{p.outer}
	}
	for !p.isEnd("E") {
		a := p.templateArgument()
		n.list = append(n.list, a)
		if own {
			p.outer.list = append(p.outer.list, p.meaning(a))
		}
		if p.take("Q") {
			n.a = p.constraint()
			p.expect("E")
			break
		}
	}
	return n
}

// meaning is what a parameter of an argument stands for.
func (p *parser) meaning(argument *node) *node {
	switch argument.kind {
	case kindTypedArg:
		return argument.b
	case kindArguments:
		pack := p.node(node{kind: kindPack, list: argument.list})
		for _, e := range argument.list {
			if e.shape != 0 {
				pack.shape = isUnknown
			}
		}
		return pack
	}
	return argument
}

// templateArgument reads a template argument (5.1.8).
func (p *parser) templateArgument() *node {
	p.enter()
	defer p.leave()
	switch c := p.peek(0); {
	case c == 'X':
		p.at++
		n := p.expression()
		p.expect("E")
		return n
	case (c == 'I' || c == 'J') && p.isGNU():
		return p.arguments(false)
	case c == 'J':
		p.at++
		n := p.node(node{kind: kindArguments, flag: true})
		for !p.isEnd("E") {
			n.list = append(n.list, p.templateArgument())
		}
		return n
	case c == 'L' && p.peek(1) == 'Z' && !p.isGNU():
		p.at += 2
		n := p.encoding(false)
		p.expect("E")
		return n
	case c == 'L':
		return p.primary()
	case c == 'T' && p.isDeclaration() && !p.isGNU():
		decl := p.declaration(nil)
		return p.node(node{kind: kindTypedArg, a: decl, b: p.templateArgument()})
	}
	return p.typ()
}

// isDeclaration says whether the declaration of a template parameter follows.
func (p *parser) isDeclaration() bool {
	switch p.peek(1) {
	case 'y', 'p', 't', 'n', 'k':
		return p.peek(0) == 'T'
	}
	return false
}

// inventedNames are those of template parameters of lambdas: of types, values and
// templates.
var inventedNames = [3]string{"$T", "$N", "$TT"}

func (p *parser) invent(what int, into *parameters) *node {
	text := inventedNames[what]
	if i := p.invented[what]; i > 0 {
		text += decimal(i - 1)
	}
	p.invented[what]++
	n := p.name(text)
	if into != nil {
		into.list = append(into.list, n)
	}
	return n
}

// declaration reads the declaration of a template parameter.
func (p *parser) declaration(into *parameters) *node {
	p.enter()
	defer p.leave()
	switch {
	case p.take("Ty"):
		return p.node(node{kind: kindTypeDecl, a: p.invent(0, into)})
	case p.take("Tk"):
		was := p.isSymbolic
		p.isSymbolic = true
		constraint := p.anyName(nil)
		p.isSymbolic = was
		return p.node(node{kind: kindConceptDecl, b: constraint, a: p.invent(0, into)})
	case p.take("Tn"):
		n := p.node(node{kind: kindValueDecl, a: p.invent(1, into), shape: hasRight})
		n.b = p.typ()
		return n
	case p.take("Tt"):
		return p.templateDeclaration(into)
	case p.take("Tp"):
		return p.node(node{kind: kindPackDecl, a: p.declaration(into), shape: hasRight})
	}
	return p.fail()
}

func (p *parser) templateDeclaration(into *parameters) *node {
	n := p.node(node{kind: kindTemplateDecl, a: p.invent(2, into), shape: hasRight})
	inner := &parameters{}
	levels := len(p.levels)
	p.levels = append(p.levels, inner)
	for !p.isEnd("E") {
		n.list = append(n.list, p.declaration(inner))
		if p.take("Q") {
			n.c = p.constraint()
			p.expect("E")
			break
		}
	}
	p.levels = p.levels[:min(levels, len(p.levels))]
	return n
}

// constraint reads what a template requires.
func (p *parser) constraint() *node {
	was := p.isSymbolic
	p.isSymbolic = true
	n := p.expression()
	p.isSymbolic = was
	return n
}

// lambda reads the parameters of a closure (5.1.9), as LLVM does.
func (p *parser) lambda() *node {
	defer func(level, levels int) {
		p.lambdaLevel = level
		p.levels = p.levels[:min(levels, len(p.levels))]
	}(p.lambdaLevel, len(p.levels))
	p.lambdaLevel = len(p.levels)
	n := p.node(node{kind: kindLambda})
	own := &parameters{}
	p.levels = append(p.levels[:len(p.levels):len(p.levels)], own)
	for p.isDeclaration() && !p.failed {
		n.decls = append(n.decls, p.declaration(own))
	}
	if len(n.decls) == 0 {
		p.levels = p.levels[:len(p.levels)-1]
	}
	if p.take("Q") {
		n.a = p.constraint()
	}
	if !p.take("v") {
		for first := true; first || !p.failed && p.peek(0) != 'E' && p.peek(0) != 'Q'; first = false {
			n.list = append(n.list, p.typ())
		}
	}
	if p.take("Q") {
		n.b = p.constraint()
	}
	p.expect("E")
	p.unnamedNumber(n)
	return n
}

// lambdaGNU reads what lambda does, as binutils do.
func (p *parser) lambdaGNU() *node {
	n := p.node(node{kind: kindLambda})
	for p.isDeclaration() && !p.failed {
		n.decls = append(n.decls, p.declarationGNU())
	}
	n.list = p.parametersGNU()
	p.expect("E")
	n.num = p.compact()
	return n
}

// declarationGNU reads what declaration does, as binutils do.
func (p *parser) declarationGNU() *node {
	p.enter()
	defer p.leave()
	switch {
	case p.take("Ty"):
		return p.node(node{kind: kindTypeDecl})
	case p.take("Tn"):
		return p.node(node{kind: kindValueDecl, b: p.typ()})
	case p.take("Tt"):
		n := p.node(node{kind: kindTemplateDecl})
		for !p.isEnd("E") {
			n.list = append(n.list, p.declarationGNU())
		}
		return n
	case p.take("Tp"):
		return p.node(node{kind: kindPackDecl, a: p.declarationGNU()})
	}
	return p.fail()
}
