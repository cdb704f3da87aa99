// SPDX-License-Identifier: Apache-2.0

package dname

import "strings"

// LLVM returns the readable form of a name as LLVM 22 writes it, which reads only names of
// plain parts: of variables of type int, and of data that compilers generate for types and
// modules. ok is false where LLVM leaves the name as it is.
func LLVM(name string) (readable string, ok bool) {
	if name == Main {
		return "D main", true
	}
	if !IsMangled(name) {
		return "", false
	}
	p := &parser{s: name, pos: len("_D"), lastRef: len(name)}
	text := p.plainParts()
	if !p.failed && !p.take("Z") {
		p.intType()
	}
	if p.failed || p.pos != len(name) || text == "" {
		return "", false
	}
	return text, true
}

// plainParts reads a qualified name.
func (p *parser) plainParts() string {
	text, isFirst := "", true
	for !p.failed {
		if p.peek(0) == '0' {
			for p.take("0") {
			}
		} else {
			if !isFirst {
				text += "."
			}
			isFirst = false
			text = p.bounded(p.plainPart(text))
		}
		if p.isTemplate() || !p.isName(0) {
			break
		}
	}
	return text
}

// plainPart reads a part of a qualified name. The name of a template is read like others,
// and constructors have names of their own.
func (p *parser) plainPart(before string) string {
	end := -1
	if p.peek(0) == 'Q' {
		target, ok := p.reference()
		if !ok {
			return p.fail()
		}
		end, p.pos = p.pos, target
	}
	n := p.number()
	if p.failed || n == 0 || n > len(p.s)-p.pos {
		return p.fail()
	}
	name := p.s[p.pos : p.pos+n]
	p.pos += n
	if end < 0 && n >= 4 && strings.HasPrefix(name, "__S") && strings.Trim(name[3:], "0123456789") == "" {
		return p.plainPart(before)
	}
	for _, s := range special {
		if name == s.name && s.before != "" && strings.HasPrefix(p.rest(), s.follows) {
			before, name = s.before+strings.TrimSuffix(before, "."), ""
		}
	}
	if end >= 0 {
		p.pos = end
	}
	return before + name
}

// intType reads the type int, the only one that LLVM knows, or a back reference to it.
func (p *parser) intType() {
	if p.enter() && !p.take("i") {
		if p.peek(0) == 'Q' {
			p.typeReference(func(p *parser) string { p.intType(); return "" })
		} else {
			p.failed = true
		}
	}
	p.leave()
}
