// SPDX-License-Identifier: Apache-2.0

package msvcname

import "strings"

// identifier is a part of a path: the text and the arguments of a template, and where the name is
// that of another thing, this before or after the text.
type identifier struct {
	only
	text       string
	arguments  []node
	isTemplate bool
	form       form
	is         node // the class of a constructor, the type of a conversion, the function of a scope, the thing
}

// form is how an identifier is written.
type form uint8

const (
	plain       form = iota
	constructor      // text is the tilde of a destructor, or nothing
	conversion
	scope  // text is the number of the scope
	quoted // text tells for which purpose of a thing it is
)

func (n *identifier) before(w *writer) {
	switch n.form {
	case constructor:
		w.text(n.text)
		w.node(n.is)
		n.writeArguments(w)
	case conversion:
		w.text("operator")
		n.writeArguments(w)
		w.text(" ")
		w.node(n.is)
	case scope:
		w.text("`")
		w.whole(n.is)
		w.text("'::`" + n.text + "'")
	case quoted:
		w.text(n.text)
		w.node(n.is)
		w.text("''")
	default:
		w.text(n.text)
		n.writeArguments(w)
	}
}

func (n *identifier) writeArguments(w *writer) {
	if n.isTemplate {
		w.text("<")
		w.list(n.arguments)
		w.text(">")
	}
}

// path is a name with the scopes that it is in, the innermost first.
type path struct {
	only
	parts []*identifier
}

func (p *path) before(w *writer) {
	for i := len(p.parts) - 1; i >= 0; i-- {
		w.node(p.parts[i])
		if i > 0 {
			w.text("::")
		}
	}
}

// symbolPath reads the path of a function or variable.
func (r *reader) symbolPath() *path {
	p := r.scopes(r.symbolName(true))
	name := p.parts[0]
	if name.form == constructor {
		if len(p.parts) < 2 {
			r.bad()
			return p
		}
		name.is = p.parts[1]
	}
	return p
}

// typePath reads the path of a type.
func (r *reader) typePath() *path { return r.scopes(r.typeName()) }

// scopes reads the scopes around a name.
func (r *reader) scopes(name *identifier) *path {
	p := &path{parts: []*identifier{name}}
	for r.more() {
		p.parts = append(p.parts, r.scope())
	}
	return p
}

// scope reads a scope.
func (r *reader) scope() *identifier {
	if i, ok := r.reference(len(r.back.names)); ok {
		return r.back.names[i].is
	}
	switch {
	case strings.HasPrefix(r.rest, "?$"):
		return r.template(true)
	case strings.HasPrefix(r.rest, "?A"):
		return r.unnamedSpace()
	case isLocalScope(r.rest):
		return r.localScope()
	}
	return r.simple(true)
}

// unnamedSpace reads a namespace without a name: ?A, what tells it from others, and a mark.
func (r *reader) unnamedSpace() *identifier {
	r.must("?A")
	key, rest, ok := strings.Cut(r.rest, ended)
	if !ok {
		r.bad()
		return &identifier{}
	}
	r.rest = rest
	r.remember(key, &identifier{text: key})
	return &identifier{text: "`anonymous namespace'"}
}

// isLocalScope reports whether a text begins with a scope in a function: ?, a number, ?.
func isLocalScope(s string) bool {
	number, _, ok := strings.Cut(strings.TrimPrefix(s, "?"), "?")
	switch {
	case !ok || number == "" || s[0] != '?':
		return false
	case len(number) == 1:
		return number == ended || isDigit(number[0])
	}
	digits, ok := strings.CutSuffix(number, ended)
	return ok && digits[0] != 'A' && strings.Trim(digits, "ABCDEFGHIJKLMNOP") == ""
}

// localScope reads a scope in a function.
func (r *reader) localScope() *identifier {
	r.must("?")
	number := r.unsigned()
	r.must("?")
	n := &identifier{form: scope, text: decimal(number)}
	n.is = r.symbol()
	return n
}

// simple reads a name that is written out.
func (r *reader) simple(isKept bool) *identifier {
	s, rest, ok := strings.Cut(r.rest, ended)
	if !ok || s == "" {
		r.bad()
		return &identifier{}
	}
	r.rest = rest
	n := &identifier{text: s}
	if isKept {
		r.remember(s, n)
	}
	return n
}

// typeName reads the name of a type without its scopes.
func (r *reader) typeName() *identifier {
	if i, ok := r.reference(len(r.back.names)); ok {
		return r.back.names[i].is
	}
	if strings.HasPrefix(r.rest, "?$") {
		return r.template(true)
	}
	return r.simple(true)
}

// symbolName reads the name of a function or variable without its scopes.
func (r *reader) symbolName(isKept bool) *identifier {
	if i, ok := r.reference(len(r.back.names)); ok {
		return r.back.names[i].is
	}
	switch {
	case strings.HasPrefix(r.rest, "?$"):
		return r.template(false)
	case strings.HasPrefix(r.rest, "?"):
		return r.operator()
	}
	return r.simple(isKept)
}

// operator reads the name of a function that has a code.
func (r *reader) operator() *identifier {
	r.must("?")
	switch {
	case r.cut("0"):
		return &identifier{form: constructor}
	case r.cut("1"):
		return &identifier{form: constructor, text: "~"}
	case r.cut("B"):
		return &identifier{form: conversion}
	case r.cut("__K"):
		n := r.simple(false)
		n.text = `operator ""` + n.text
		return n
	}
	s, ok := lookUp(r, operators, 3)
	if !ok {
		r.bad()
	}
	return &identifier{text: s}
}

// template reads the name of a template and its arguments. isKept asks to keep it for digits to refer
// to.
func (r *reader) template(isKept bool) *identifier {
	r.must("?$")
	n := &identifier{}
	if !r.deeper() {
		return n
	}
	defer r.up()
	outer := r.back
	r.back = references{}
	n = r.symbolName(true)
	isSpecial := n.form != plain
	copied := *n // the name alone may be kept
	copied.arguments, copied.isTemplate = r.arguments(), true
	r.back = outer
	if !isKept {
		return &copied
	}
	if isSpecial {
		r.bad()
	}
	r.rememberWritten(&copied)
	return &copied
}
