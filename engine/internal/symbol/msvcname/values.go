// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"math"
	"strconv"
	"strings"
)

// This file reads the values of template parameters of C++20, which may be floating-point numbers, and
// objects of classes with their values.

// value reads a value by its code. isInner is set in an object, where a reference stands for a pointer.
func (r *reader) value(isInner bool) node {
	if !r.deeper() {
		return nil
	}
	defer r.up()
	c := r.next()
	if k, ok := symbolKinds[c]; ok {
		if isInner && c == 'E' {
			k.mark = "&"
		}
		return r.symbolValue(&k)
	}
	read, ok := valueReaders[c]
	if !ok {
		r.bad()
		return nil
	}
	return read(r)
}

// valueReaders are by codes; set in init, since they read values again.
var valueReaders map[byte]func(r *reader) node

func init() { //nolint:gochecknoinits // a cycle of initialization otherwise
	valueReaders = map[byte]func(r *reader) node{
		'0': (*reader).integer, 'A': (*reader).float32, 'B': (*reader).float64, '2': (*reader).object, '3': (*reader).elements, '7': (*reader).unionValue,
		'5': (*reader).pointerValue, '6': (*reader).namedPart, 'C': (*reader).elementPart, '8': (*reader).memberValue, 'N': (*reader).noMember,
	}
}

func (r *reader) integer() node {
	n, isNegative := r.magnitude()
	s := decimal(n)
	if isNegative {
		s = "-" + s
	}
	return &text{s: s}
}

func (r *reader) float32() node {
	return float(float64(math.Float32frombits(uint32(r.unsigned()))), 32) //nolint:gosec // the bits of one
}

func (r *reader) float64() node { return float(math.Float64frombits(r.unsigned()), 64) }

func float(f float64, bits int) node { return &text{s: strconv.FormatFloat(f, 'g', -1, bits)} }

func (r *reader) noMember() node { return &text{s: "nullptr"} }

// objectValue is an object: its type where it has one, and the values in braces.
type objectValue struct {
	only
	class  node
	front  string // before the values
	values []node
}

func (v *objectValue) before(w *writer) {
	w.node(v.class)
	w.text("{" + v.front)
	w.list(v.values)
	w.text("}")
}

// object reads the bases and members of an object of a class.
func (r *reader) object() node {
	v := &objectValue{class: r.readType(noQualifiers)}
	for r.more() {
		v.values = append(v.values, r.member())
	}
	return v
}

// member reads a value in an object: one without a type of its own has it in front.
func (r *reader) member() node {
	if c := r.peek(); c == 0 || !strings.ContainsRune("237", rune(c)) {
		r.readType(noQualifiers)
	}
	return r.value(true)
}

// elements reads an array.
func (r *reader) elements() node {
	r.readType(noQualifiers)
	v := &objectValue{}
	for r.more() {
		v.values = append(v.values, r.value(true))
		r.must(ended)
	}
	return v
}

// unionValue reads a union.
func (r *reader) unionValue() node {
	v := &objectValue{class: r.readType(noQualifiers)}
	if r.cut(ended) {
		return v
	}
	v.front = "." + r.typeName().text + " = "
	v.values = []node{r.value(true)}
	r.must(ended)
	return v
}

// pointerValue reads a pointer to a part of an object.
func (r *reader) pointerValue() node {
	v := &prefixed{front: "&", inner: r.part()}
	r.must(ended)
	return v
}

// namedPart and elementPart read a pointer or a reference to a part of an object, of which names do
// not tell which it is.
func (r *reader) namedPart() node { return &prefixed{front: "&", inner: r.memberOf()} }

func (r *reader) elementPart() node { return &prefixed{front: "&", inner: r.elementOf()} }

// prefixed is a node with a text in front.
type prefixed struct {
	only
	front string
	inner node
}

func (p *prefixed) before(w *writer) {
	w.text(p.front)
	w.node(p.inner)
}

// memberValue reads a pointer to a member of data.
func (r *reader) memberValue() node {
	class := r.typePath()
	class.parts = append([]*identifier{r.typeName()}, class.parts...)
	r.must(ended)
	return &prefixed{front: "&", inner: class}
}

// partOf is a part of a variable.
type partOf struct {
	only
	variable node
	part     string
}

func (p *partOf) before(w *writer) {
	style := w.Style
	w.NoVariableType, w.NoAccess, w.NoMemberType = true, true, true
	w.node(p.variable)
	w.Style = style
	w.text(p.part)
}

// part reads a variable, or a part of one.
func (r *reader) part() node {
	if !r.deeper() {
		return nil
	}
	defer r.up()
	switch r.next() {
	case '1', 'E':
		return &partOf{variable: r.symbol()}
	case '6':
		return r.memberOf()
	case 'C':
		return r.elementOf()
	}
	r.bad()
	return nil
}

func (r *reader) memberOf() node {
	p := &partOf{variable: r.part()}
	p.part = "." + r.typeName().text
	r.must(ended)
	return p
}

func (r *reader) elementOf() node {
	p := &partOf{variable: r.part()}
	r.must("0")
	p.part = "[" + decimal(r.unsigned()) + "]"
	r.must(ended)
	return p
}
