// SPDX-License-Identifier: Apache-2.0

package msvcname

import "strings"

// packs are marks between the arguments of templates that are written as nothing: empty packs, and
// where one ends.
var packs = []string{"$S", "$$V", "$$$V", "$$Z"}

// arguments reads the arguments of a template.
func (r *reader) arguments() (list []node) {
	for r.more() {
		if !r.isPack() {
			list = append(list, r.argument())
		}
	}
	return list
}

func (r *reader) isPack() bool {
	for _, p := range packs {
		if r.cut(p) {
			return true
		}
	}
	return false
}

// argument reads an argument of a template.
func (r *reader) argument() node {
	switch {
	case r.cut("$$Y"): // an alias of a template
		return r.typePath()
	case r.cut("$M"): // of a parameter whose type is auto: the type that it got
		r.readType(noQualifiers)
		return r.value(false)
	case strings.HasPrefix(r.rest, "$") && !strings.HasPrefix(r.rest, "$$"):
		r.must("$")
		return r.value(false)
	}
	return r.readType(noQualifiers)
}

// A symbolKind is a kind of value that is a symbol, or the place of a member.
type symbolKind struct {
	mark    string // in front of a symbol
	isKept  bool   // digits refer back to the symbol's name, and it may be missing where there are offsets
	offsets int
}

// symbolKinds are by their codes: functions, members by the bases of their class, references, and
// members of data.
var symbolKinds = map[byte]symbolKind{
	'1': {"&", true, 0}, 'H': {"", true, 1}, 'I': {"", true, 2}, 'J': {"", true, 3}, 'E': {"", false, 0}, 'F': {"", false, 2}, 'G': {"", false, 3},
}

// symbolValue is an argument that is a symbol, the place of a member, or both.
type symbolValue struct {
	only
	symbol  node
	mark    string
	offsets []int64
}

// symbolValue reads an argument.
func (r *reader) symbolValue(k *symbolKind) node {
	v := &symbolValue{mark: k.mark}
	if k.offsets == 0 || k.isKept && r.peek() == '?' {
		v.symbol = r.symbol()
	}
	if k.isKept && v.symbol != nil {
		r.rememberSymbol(v.symbol)
	}
	for range k.offsets {
		v.offsets = append(v.offsets, r.signed())
	}
	return v
}

// rememberSymbol keeps the name of a symbol for digits to refer to, without its scopes.
func (r *reader) rememberSymbol(symbol node) {
	p := pathOf(symbol)
	if p == nil { // a literal is no argument
		r.bad()
		return
	}
	r.rememberWritten(p.parts[0])
}

func (v *symbolValue) before(w *writer) {
	if len(v.offsets) == 0 {
		w.text(v.mark)
		w.node(v.symbol)
		return
	}
	w.text("{")
	if v.symbol != nil {
		w.node(v.symbol)
		w.text(", ")
	}
	w.numbers(v.offsets...)
	w.text("}")
}
