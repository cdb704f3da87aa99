// SPDX-License-Identifier: Apache-2.0

package cxxname

import "strconv"

// encoding reads a function with its type, data, or a special name (ABI 5.1.2).
func (p *parser) encoding(top bool) *node {
	p.enter()
	defer p.leave()
	if !p.isGNU() {
		// What template parameters of an encoding stand for has nothing to do
		// with what is around it.
		defer p.restoreLevels(p.levels, p.outer)
		p.levels, p.outer = nil, &parameters{}
	}
	if c := p.peek(0); c == 'G' || c == 'T' {
		return p.special()
	}
	if p.isGNU() {
		return p.encodingGNU(top)
	}
	s := state{forwards: len(p.forwards)}
	name := p.anyName(&s)
	p.resolve(&s)
	if p.failed || p.isEncodingEnd() {
		return name
	}
	n := p.node(node{kind: kindEncoding, a: name})
	if p.take("Ua9enable_ifI") {
		for !p.isEnd("E") {
			n.list = append(n.list, p.templateArgument())
		}
		n.flag = true
	}
	f := p.node(node{kind: kindFunction, quals: s.quals, shape: hasRight | isFunction})
	n.b = f
	if !s.isConversion && s.hasArguments {
		f.a = p.typ()
	}
	if !p.take("v") {
		for first := true; first || !p.failed && !p.isEncodingEnd() && p.peek(0) != 'Q'; first = false {
			t := p.typ()
			if first && s.hasThis {
				t = p.node(node{kind: kindExplicitThis, a: t})
			}
			f.list = append(f.list, t)
		}
	}
	if p.take("Q") {
		n.c = p.constraint()
	}
	return n
}

func (p *parser) restoreLevels(levels []*parameters, outer *parameters) {
	p.levels, p.outer = levels, outer
}

func (p *parser) isEncodingEnd() bool {
	c := p.peek(0)
	return c == 0 || c == 'E' || c == '.' || c == '_'
}

// encodingGNU reads what encoding does, as binutils do.
func (p *parser) encodingGNU(top bool) *node {
	name := p.anyName(nil)
	if c := p.peek(0); c == 0 || c == 'E' || p.failed {
		return name
	}
	f := p.function(hasResult(name))
	if !top && name.kind == kindLocal {
		// Around a local name the result would be taken for its own.
		f.a = nil
	}
	return p.node(node{kind: kindEncoding, a: name, b: f})
}

// hasResult says whether the result of a function is mangled with it (5.1.5.3).
func hasResult(name *node) bool {
	switch name.kind {
	case kindLocal:
		return hasResult(name.b)
	case kindThis:
		return hasResult(name.a)
	case kindTemplate:
		return !isConversion(name.a)
	}
	return false
}

func isConversion(name *node) bool {
	switch name.kind {
	case kindQualified, kindLocal:
		return isConversion(name.b)
	case kindConstructor, kindDestructor, kindConversion:
		return true
	}
	return false
}

// function reads a result, if there is one, and parameters (GNU).
func (p *parser) function(result bool) *node {
	n := p.node(node{kind: kindFunction})
	if p.take("J") {
		result = true
	}
	if result {
		n.a = p.typ()
	}
	n.list = p.parametersGNU()
	return n
}

// parametersGNU reads the types of parameters.
func (p *parser) parametersGNU() []*node {
	var list []*node
	for !p.failed {
		c := p.peek(0)
		if c == 0 || c == 'E' || c == '.' || c == 'Q' || (c == 'R' || c == 'O') && p.peek(1) == 'E' {
			break
		}
		list = append(list, p.typ())
	}
	if len(list) == 0 {
		p.fail()
	}
	if len(list) == 1 && list[0].kind == kindBuiltin && list[0].text == "void" {
		return nil
	}
	return list
}

// A specialName is a name that a compiler made of another one.
type specialName struct {
	code, llvm, gnu string
	operand         byte // 't' a type, 'e' an encoding, 'n' a name, 'a' a template argument
	offsets         int  // call offsets before it
}

// specialNames are those of ABI 5.1.4, and extensions.
var specialNames = []specialName{
	{"TV", "vtable for ", "vtable for ", 't', 0},
	{"TT", "VTT for ", "VTT for ", 't', 0},
	{"TI", "typeinfo for ", "typeinfo for ", 't', 0},
	{"TS", "typeinfo name for ", "typeinfo name for ", 't', 0},
	{"TA", "template parameter object for ", "template parameter object for ", 'a', 0},
	{"TF", "", "typeinfo fn for ", 't', 0},
	{"TJ", "", "java Class for ", 't', 0},
	{"TH", "thread-local initialization routine for ", "TLS init function for ", 'n', 0},
	{"TW", "thread-local wrapper routine for ", "TLS wrapper function for ", 'n', 0},
	{"Tc", "covariant return thunk to ", "covariant return thunk to ", 'e', 2},
	{"Th", "non-virtual thunk to ", "non-virtual thunk to ", 'e', 1},
	{"Tv", "virtual thunk to ", "virtual thunk to ", 'e', 1},
	{"GV", "guard variable for ", "guard variable for ", 'n', 0},
	{"GA", "", "hidden alias for ", 'e', 0},
	{"GTn", "", "non-transaction clone for ", 'e', 0},
	{"GTt", "", "transaction clone for ", 'e', 0},
}

// special reads a special name.
func (p *parser) special() *node {
	switch {
	case p.take("TC"):
		derived := p.typ()
		if p.digits(!p.isGNU()) == "" {
			return p.fail()
		}
		p.expect("_")
		return p.node(node{kind: kindSpecial2, text: "construction vtable for ", a: p.typ(), b: derived})
	case p.take("GR"):
		return p.temporary()
	case p.take("GI"):
		module := p.module(nil)
		if module == nil {
			return p.fail()
		}
		return p.node(node{kind: kindSpecial, text: "initializer for module ", a: module})
	}
	for i := range specialNames {
		s := &specialNames[i]
		if !p.has(s.code) {
			continue
		}
		text := s.llvm
		if p.isGNU() || text == "" && p.reading == readABI {
			text = s.gnu
		}
		if text == "" {
			break
		}
		p.at += len(s.code)
		if s.offsets > 0 && s.code != "Tc" {
			p.at-- // the letter is that of the offset
		}
		for range s.offsets {
			p.callOffset()
		}
		return p.node(node{kind: kindSpecial, text: text, a: p.specialOperand(s.operand)})
	}
	return p.fail()
}

func (p *parser) specialOperand(operand byte) *node {
	switch operand {
	case 't':
		return p.typ()
	case 'e':
		return p.encoding(false)
	case 'a':
		return p.templateArgument()
	}
	return p.anyName(nil)
}

// temporary reads a temporary that a reference is bound to. Binutils read its
// number in decimal digits, without what the ABI has behind it.
func (p *parser) temporary() *node {
	n := p.node(node{kind: kindTemporary, a: p.anyName(nil)})
	if p.isGNU() {
		n.num, _ = strconv.Atoi(p.digits(false))
		return n
	}
	if _, ok := p.sequence(); !p.take("_") && ok {
		return p.fail()
	}
	return n
}

func (p *parser) callOffset() {
	kind := p.peek(0)
	p.at++
	if kind != 'h' && kind != 'v' || p.at > len(p.text) {
		p.fail()
		return
	}
	if p.digits(true) == "" {
		p.fail()
	}
	if kind == 'v' {
		p.expect("_")
		if p.digits(true) == "" {
			p.fail()
		}
	}
	p.expect("_")
}
