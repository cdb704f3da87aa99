// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"fmt"
	"strings"
)

// symbol reads a whole name.
func (r *reader) symbol() node {
	if !r.deeper() {
		return nil
	}
	defer r.up()
	switch {
	case strings.HasPrefix(r.rest, hashed):
		return r.hash()
	case r.cut(typeinfo):
		return r.typeInfo()
	}
	if special, ok := lookUp(r, specialNames, len("??_C@_")); ok {
		return special.read(r, special.text)
	}
	r.must(decorated)
	return r.declared()
}

// declared reads a function or a variable after the mark that begins its name.
func (r *reader) declared() node {
	name := r.symbolPath()
	if storage, ok := lookUp(r, storages, 1); ok {
		if name.parts[0].form == conversion {
			r.bad()
		}
		return r.variable(name, storage)
	}
	f := r.function(name)
	if n := name.parts[0]; n.form == conversion {
		if n.is = f.signature.result; n.is == nil {
			r.bad()
		}
	}
	return f
}

// pathOf returns the path of a symbol; nil where it has none.
func pathOf(symbol node) *path {
	switch n := symbol.(type) {
	case *path:
		return n
	case *table:
		return n.name
	case *thunk:
		return pathOf(n.name)
	case *function:
		return pathOf(n.name)
	case *variable:
		return pathOf(n.name)
	}
	return nil
}

// hash reads a name of which a hash alone is left.
func (r *reader) hash() node {
	hash, rest, ok := strings.Cut(r.rest[len(hashed):], ended)
	if !ok {
		r.bad()
	}
	n := &identifier{text: hashed + hash + ended}
	if r.rest = rest; r.cut(ofVtable) {
		n.text += ofVtable
	}
	return &path{parts: []*identifier{n}}
}

// typeInfo reads the name in a type descriptor after its dot.
func (r *reader) typeInfo() node {
	t := r.readType(mayHave)
	if r.rest != "" {
		r.bad()
	}
	return &variable{kind: t, name: &text{s: "`RTTI Type Descriptor Name'"}}
}

// storage is how a variable is stored, by a code.
type storage struct {
	access   string
	isStatic bool
}

var storages = map[string]storage{
	"0": {private, true}, "1": {protected, true}, "2": {public, true},
	"3": {}, "4": {}, // global, and local static
}

// variable is a variable with its name.
type variable struct {
	storage
	name node
	kind node // its type; nil: not known
}

func (v *variable) before(w *writer) {
	if !w.NoAccess {
		w.text(v.access)
	}
	if v.isStatic && !w.NoMemberType {
		w.text("static ")
	}
	if v.kind != nil && !w.NoVariableType {
		w.before(v.kind)
		w.space()
	}
	w.node(v.name)
}

func (v *variable) after(w *writer) {
	if v.kind != nil && !w.NoVariableType {
		w.after(v.kind)
	}
}

// variable reads the type of a variable and what follows it.
func (r *reader) variable(name *path, storage storage) node {
	t := r.readType(noQualifiers)
	if p, ok := t.(*pointerType); ok {
		p.is |= r.extra()
		is := r.cv().is
		if p.class != nil {
			r.typePath() // again
		}
		p.to.qualify(is)
	} else {
		t.qualify(r.cv().is)
	}
	return &variable{storage: storage, name: name, kind: t}
}

// table is a vftable or another table of a class, of one or more of its bases.
type table struct {
	only
	is    qualifiers
	name  *path
	bases []node
}

// table reads a table.
func (r *reader) table(name string) node {
	t := &table{name: r.scopes(&identifier{text: name})}
	if !r.cut("6") {
		r.must("7")
	}
	t.is = r.cv().is
	for r.more() {
		t.bases = append(t.bases, r.typePath())
	}
	return t
}

func (t *table) before(w *writer) {
	w.qualifiers(t.is, "")
	if t.is != 0 {
		w.text(" ")
	}
	w.node(t.name)
	for i, b := range t.bases {
		w.text([]string{"{for `", "s `"}[min(i, 1)])
		w.node(b)
		w.text("'")
	}
	if len(t.bases) > 0 {
		w.text("}")
	}
}

// untyped reads a thing without a type.
func (r *reader) untyped(name string) node {
	p := r.scopes(&identifier{text: name})
	r.must("8")
	return p
}

// typeDescriptor reads the descriptor of a type.
func (r *reader) typeDescriptor(name string) node {
	t := r.readType(mayHave)
	if r.must("@8"); r.rest != "" {
		r.bad()
	}
	return &variable{kind: t, name: &text{s: name}}
}

// baseDescriptor reads the descriptor of a base of a class.
func (r *reader) baseDescriptor(name string) node {
	offset, pointer := uint32(r.unsigned()), int32(r.signed())   //nolint:gosec // as compilers have it
	inTable, flags := uint32(r.unsigned()), uint32(r.unsigned()) //nolint:gosec // as compilers have it
	p := r.scopes(&identifier{text: fmt.Sprintf("%s%d, %d, %d, %d)'", name, offset, pointer, inTable, flags)})
	r.cut("8")
	return p
}

// vcall reads a thunk that calls a virtual function by its place in the table.
func (r *reader) vcall(name string) node {
	n := &identifier{}
	p := r.scopes(n)
	r.must("$B")
	n.text = name + decimal(r.unsigned()) + ", {flat}}"
	r.must("A")
	f := &function{name: p, signature: &functionType{isBare: true, convention: conventions[r.next()]}, thunk: ""}
	return &thunk{f}
}

// thunk is a function that is named as a thunk.
type thunk struct{ *function }

func (t *thunk) before(w *writer) {
	w.text("[thunk]: ")
	t.function.before(w)
}

// guard reads the guard of a static variable in a function.
func (r *reader) guard(name string) node {
	n := &identifier{text: name}
	p := r.scopes(n)
	if !r.cut("4IA") {
		r.must("5")
	}
	if r.rest == "" {
		return p
	}
	if index := uint32(r.unsigned()); index != 0 { //nolint:gosec // as compilers have it
		n.text += "{" + decimal(uint64(index)) + "}"
	}
	return p
}

// initializer reads the function that initializes or destroys a variable: the name may be that of
// a variable with its type, or only be the variable's.
func (r *reader) initializer(name string) node {
	hasType := r.cut("?")
	switch subject := r.declared().(type) {
	case *variable:
		for range map[bool]int{false: 1, true: 2}[hasType] {
			r.must(ended)
		}
		return r.function(about(name+"`", subject))
	case *function:
		if hasType {
			r.bad()
		}
		subject.name = about(name+"'", subject.name)
		return subject
	}
	r.bad()
	return nil
}

// about is the name of a function that is for another thing.
func about(front string, subject node) *path {
	return &path{parts: []*identifier{{form: quoted, text: front, is: subject}}}
}
