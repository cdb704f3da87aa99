// SPDX-License-Identifier: Apache-2.0

package msvcname

import "strconv"

// qualifiers are const and others.
type qualifiers uint8

const (
	isConst qualifiers = 1 << iota
	isVolatile
	isRestrict
	isUnaligned
)

// qualifierWords are the words in the order in which they are written.
var qualifierWords = []struct {
	is   qualifiers
	word string
}{{isConst, "const"}, {isVolatile, "volatile"}, {isRestrict, "__restrict"}, {isUnaligned, "__unaligned"}}

// qualifiers writes words, each with a text in front, or the first one alone, with spaces in front of the others.
func (w *writer) qualifiers(q qualifiers, front string) {
	for _, k := range qualifierWords {
		if q&k.is != 0 {
			w.text(front + k.word)
			front = " "
		}
	}
}

// A typeNode is a type.
type typeNode interface {
	node
	qualify(q qualifiers)
}

// qualified has the qualifiers of a type.
type qualified struct{ is qualifiers }

func (t *qualified) qualify(q qualifiers) { t.is |= q }

// bareType is a type without a structure.
type bareType struct {
	only
	qualified
	name string
}

func (t *bareType) before(w *writer) {
	w.text(t.name)
	w.qualifiers(t.is&^isUnaligned, " ")
}

// taggedType is a class, struct, union or enumeration.
type taggedType struct {
	only
	qualified
	tag  string
	name *path
}

func (t *taggedType) before(w *writer) {
	w.text(t.tag + " ")
	w.node(t.name)
	w.qualifiers(t.is&^isUnaligned, " ")
}

// customType is a type that a compiler names by a text.
type customType struct {
	only
	qualified
	name *identifier
}

func (t *customType) before(w *writer) { w.node(t.name) }

// pointerType is a pointer, reference, or pointer to a member.
type pointerType struct {
	qualified
	mark   string
	to     typeNode
	class  *path // of a pointer to a member; else nil
	signed []int64
}

func (t *pointerType) before(w *writer) {
	function, isFunction := t.to.(*functionType)
	if isFunction {
		style := w.Style
		w.Style = Style{NoCallingConvention: true} // the rest is the type
		w.before(function)
		w.Style = style
	} else {
		w.before(t.to)
	}
	w.space()
	w.qualifiers(t.is&isUnaligned, "")
	if t.is&isUnaligned != 0 {
		w.text(" ")
	}
	if isFunction {
		w.text("(")
		w.convention(function.convention)
		w.text(" ")
	} else if _, isArray := t.to.(*arrayType); isArray {
		w.text("(")
	}
	if t.class != nil {
		w.node(t.class)
		w.text("::")
	}
	w.text(t.mark)
	w.qualifiers(t.is&^isUnaligned, "")
	if t.signed != nil {
		w.text("__ptrauth(")
		w.numbers(t.signed...)
		w.text(")")
	}
}

func (t *pointerType) after(w *writer) {
	switch t.to.(type) {
	case *functionType, *arrayType:
		w.text(")")
	}
	w.after(t.to)
}

// arrayType is an array.
type arrayType struct {
	qualified
	sizes   []uint64 // 0: without a bound
	element typeNode
}

func (t *arrayType) before(w *writer) {
	w.before(t.element)
	w.qualifiers(t.is&^isUnaligned, " ")
}

func (t *arrayType) after(w *writer) {
	for _, n := range t.sizes {
		w.text("[")
		if n != 0 {
			w.text(decimal(n))
		}
		w.text("]")
	}
	w.after(t.element)
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// need is whether qualifiers stand before a type.
type need uint8

const (
	noQualifiers need = iota
	mustHave
	mayHave // after a question mark
)

// readType reads a type.
func (r *reader) readType(n need) typeNode {
	if !r.deeper() {
		return &bareType{}
	}
	defer r.up()
	var is qualifiers
	if n == mustHave || n == mayHave && r.cut("?") {
		is = r.cv().is
	}
	t := r.unqualifiedType()
	t.qualify(is)
	return t
}

// cv reads the qualifiers of the thing that a pointer points to.
func (r *reader) cv() cvKind {
	kind, ok := cvKinds[r.next()]
	if !ok {
		r.bad()
	}
	return kind
}

// extra reads the qualifiers behind a pointer's code.
func (r *reader) extra() (is qualifiers) {
	for _, e := range extras {
		if r.cut(e.code) {
			is |= e.is
		}
	}
	return is
}

// unqualifiedType reads a type by its first characters.
func (r *reader) unqualifiedType() typeNode {
	if name, ok := lookUp(r, primitives, 3); ok {
		return &bareType{name: name}
	}
	if tag, ok := lookUp(r, tags, 2); ok {
		return &taggedType{tag: tag, name: r.typePath()}
	}
	if kind, ok := lookUp(r, pointers, 3); ok {
		return r.pointer(kind)
	}
	switch {
	case r.cut("Y"):
		return r.array()
	case r.cut("$$B"): // an array
		return r.readType(noQualifiers)
	case r.cut("$$C"):
		return r.readType(mustHave)
	case r.cut("$$A8@@"):
		return r.functionType(true)
	case r.cut("$$A6"):
		return r.functionType(false)
	case r.cut("?"):
		t := &customType{name: r.typeName()}
		r.must(ended)
		return t
	}
	r.bad()
	return &bareType{}
}

// pointer reads what follows the code of a pointer or reference.
func (r *reader) pointer(kind pointerKind) typeNode {
	t := &pointerType{mark: kind.mark}
	t.is = kind.is
	if r.cut("6") {
		t.to = r.functionType(false)
		return t
	}
	mayBeMember := kind.mark == "*"
	t.is |= r.extra()
	if r.cut(managed) {
		t.mark = managedMarks[kind.mark]
	}
	if mayBeMember && r.cut("8") {
		t.class = r.typePath()
		t.to = r.functionType(true)
		return t
	}
	if r.cut("__ptrauth") {
		t.signed = []int64{int64(r.unsigned()), int64(r.unsigned()), int64(r.unsigned())}
	}
	if next, ok := cvKinds[r.peek()]; ok && next.isMember && mayBeMember {
		is := r.cv().is
		t.class = r.typePath()
		t.to = r.readType(noQualifiers)
		t.to.qualify(is)
		return t
	}
	t.to = r.readType(mustHave)
	return t
}

// array reads what follows the code of an array.
func (r *reader) array() typeNode {
	t := &arrayType{}
	count := r.unsigned()
	if count == 0 || count > uint64(len(r.rest)) {
		r.bad()
	}
	for i := uint64(0); i < count && !r.isBad; i++ {
		t.sizes = append(t.sizes, r.unsigned())
	}
	if r.cut("$$C") {
		kind := r.cv()
		if kind.isMember {
			r.bad()
		}
		t.is = kind.is
	}
	t.element = r.readType(noQualifiers)
	return t
}
