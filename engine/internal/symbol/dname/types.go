// SPDX-License-Identifier: Apache-2.0

package dname

import (
	"strconv"
	"strings"
)

// basic are the types of one letter.
var basic = map[byte]string{
	'n': "typeof(null)", 'v': "void", 'g': "byte", 'h': "ubyte", 's': "short", 't': "ushort", 'i': "int", 'k': "uint", 'l': "long", 'm': "ulong",
	'f': "float", 'd': "double", 'e': "real", 'o': "ifloat", 'p': "idouble", 'j': "ireal", 'q': "cfloat", 'r': "cdouble", 'c': "creal",
	'b': "bool", 'a': "char", 'u': "wchar", 'w': "dchar",
}

// enclosing are the texts around a nested type, by its prefix; types of two letters have
// nothing nested.
var enclosing = []struct {
	begins, before, after string
	isAll                 bool
}{
	{"O", "shared(", ")", false}, {"x", "const(", ")", false}, {"y", "immutable(", ")", false}, {"Ng", "inout(", ")", false}, {"Nh", "__vector(", ")", false},
	{"Nn", "typeof(*null)", "", true}, {"zi", "cent", "", true}, {"zk", "ucent", "", true}, {"A", "", "[]", false},
}

// conventions are the calling conventions of functions.
var conventions = map[byte]string{'F': "", 'U': "extern(C) ", 'W': "extern(Windows) ", 'V': "extern(Pascal) ", 'R': "extern(C++) ", 'Y': "extern(Objective-C) "}

func (p *parser) isConvention() bool {
	_, is := conventions[p.peek(0)]
	return is
}

// attributes of functions.
var attributes = map[byte]string{
	'a': "pure ", 'b': "nothrow ", 'c': "ref ", 'd': "@property ", 'e': "@trusted ", 'f': "@safe ", 'i': "@nogc ", 'j': "return ", 'l': "scope ", 'm': "@live ",
}

// typ reads a type.
func (p *parser) typ() string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	for _, e := range enclosing {
		if !p.take(e.begins) {
			continue
		}
		if e.isAll {
			return e.before
		}
		return p.bounded(e.before + p.typ() + e.after)
	}
	c := p.peek(0)
	if text, ok := basic[c]; ok {
		p.pos++
		return text
	}
	if p.isConvention() {
		return p.functionType() + "function"
	}
	switch c {
	case 'Q':
		return p.typeReference((*parser).typ)
	case 'G', 'H', 'P', 'C', 'S', 'E', 'T', 'D', 'B':
		p.pos++
		return p.bounded(compound[c](p))
	}
	return p.fail()
}

// compound reads the types that begin with a letter, after that letter.
var compound map[byte]func(p *parser) string

func init() {
	qualified := func(p *parser) string { return p.qualified(false) }
	compound = map[byte]func(p *parser) string{
		'C': qualified, 'S': qualified, 'E': qualified, 'T': qualified,
		'G': func(p *parser) string {
			n := p.number()
			return p.typ() + "[" + strconv.Itoa(n) + "]"
		},
		'H': func(p *parser) string {
			key := p.typ()
			return p.typ() + "[" + key + "]"
		},
		'P': func(p *parser) string {
			if p.isConvention() {
				return p.functionType() + "function"
			}
			return p.typ() + "*"
		},
		'D': func(p *parser) string {
			modifiers := p.modifiers()
			if p.peek(0) == 'Q' {
				return p.typeReference((*parser).functionType) + "delegate" + modifiers
			}
			return p.functionType() + "delegate" + modifiers
		},
		'B': func(p *parser) string {
			list := p.list(p.number(), p.typ)
			return "Tuple!(" + list + ")"
		},
	}
}

// list reads n parts.
func (p *parser) list(n int, read func() string) string {
	var b strings.Builder
	for i := 0; i < n && !p.failed; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(read())
		if b.Len() > maxOutput || p.pos >= len(p.s) {
			return p.fail()
		}
	}
	return b.String()
}

// typeReference reads a back reference to a type. References within its target must lead
// further to the front, or they would go round.
func (p *parser) typeReference(read func(p *parser) string) string {
	if p.pos >= p.lastRef {
		return p.fail()
	}
	last := p.lastRef
	p.lastRef = p.pos
	target, ok := p.reference()
	if !ok {
		return p.fail()
	}
	end := p.pos
	p.pos = target
	text := read(p)
	p.pos, p.lastRef = end, last
	return text
}

// functionType reads a type of functions, without the word that ends it.
func (p *parser) functionType() string {
	convention, attributes, parameters := p.function()
	return p.bounded(convention + p.typ() + parameters + " " + attributes)
}

// function reads the calling convention, attributes and parameters of a function.
func (p *parser) function() (convention, attributes, parameters string) {
	if !p.isConvention() {
		return "", "", p.fail()
	}
	convention = conventions[p.peek(0)]
	p.pos++
	attributes = p.attributes()
	return convention, attributes, "(" + p.parameters() + ")"
}

// attributes reads the attributes of a function. Attributes of its first parameter begin
// alike.
func (p *parser) attributes() string {
	text := ""
	for p.peek(0) == 'N' {
		a, ok := attributes[p.peek(1)]
		if !ok {
			if c := p.peek(1); c != 'g' && c != 'h' && c != 'k' && c != 'n' {
				return p.fail()
			}
			break
		}
		if text += a; len(text) > maxOutput {
			return p.fail()
		}
		p.pos += 2
	}
	return text
}

// modifiers reads the modifiers of this.
func (p *parser) modifiers() string {
	text := ""
	for len(text) <= maxOutput {
		switch {
		case p.take("x"):
			return text + " const"
		case p.take("y"):
			return text + " immutable"
		case p.take("O"):
			text += " shared"
		case p.take("Ng"):
			text += " inout"
		case p.peek(0) == 'N':
			return p.fail()
		default:
			return text
		}
	}
	return p.fail()
}

// parameters reads the parameters of a function, to the end of the list.
func (p *parser) parameters() string {
	text, n := "", 0
	for !p.failed && p.pos < len(p.s) {
		switch {
		case p.take("X"): // T t...
			return text + "..."
		case p.take("Y"): // T t, ...
			if n > 0 {
				text += ", "
			}
			return text + "..."
		case p.take("Z"):
			return text
		}
		if n++; n > 1 {
			text += ", "
		}
		text = p.bounded(text + p.storage() + p.typ())
	}
	return p.fail()
}

// storage reads the storage class of a parameter.
func (p *parser) storage() string {
	text := ""
	if p.take("M") {
		text += "scope "
	}
	if p.take("Nk") {
		text += "return "
	}
	switch {
	case p.take("IK"):
		text += "in ref "
	case p.take("I"):
		text += "in "
	case p.take("J"):
		text += "out "
	case p.take("K"):
		text += "ref "
	case p.take("L"):
		text += "lazy "
	}
	return text
}
