// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/unwindd/unwindd/internal/dw"
)

// This file finds the definitions of types and variables by their names, in all units: for
// declarations of other units and for requested globals.

// definitions are the entries that define a type or a variable, by a hash of their names.
// They are searched in units, namespaces and classes.
type definitions struct {
	seed      maphash.Seed
	types     map[uint64][]entryKey
	variables map[uint64][]entryKey
	goTypes   map[uint64]entryKey // types of Go by DW_AT_go_runtime_type
	vtables   map[uint64]entryKey // vtables of Rust's traits by address
}

// maxDefinitions bounds the definitions of one name that are compared.
const maxDefinitions = 1 << 10

func (d *definitions) hash(name []byte) uint64 { return maphash.Bytes(d.seed, name) }

// definitionOf is the definition of a type that an entry declares: it has its name, and is
// in namespaces and classes of the same names. The zero Entry is none.
func (r *Reader) definitionOf(declaration Entry) Entry {
	name := declaration.Name()
	if name == "" {
		return Entry{}
	}
	known, err := r.defined.get(r.findDefinitions)
	if err != nil {
		return Entry{}
	}
	full := declaration.QualifiedName()
	for _, e := range known.entries(known.types, name) {
		if e.QualifiedName() == full && isSameKind(e.Tag(), declaration.Tag()) && e.hasArgumentsOf(declaration) {
			return e
		}
	}
	return Entry{}
}

// hasArgumentsOf reports whether two entries of one name, and the classes around them, are
// of templates with the same arguments. Names have the arguments, except with clang's
// -gsimple-template-names.
func (e Entry) hasArgumentsOf(other Entry) bool {
	for range maxOrigins {
		if e.IsZero() || other.IsZero() {
			break
		}
		if !strings.Contains(e.Name(), "<") && e.templateArguments(0) != other.templateArguments(0) {
			return false
		}
		var err, otherErr error
		e, err = e.Around()
		other, otherErr = other.Around()
		if err != nil || otherErr != nil {
			return false
		}
	}
	return true
}

// templateArguments are the arguments of a template, as text.
func (e Entry) templateArguments(depth int) string {
	var b strings.Builder
	if depth > maxTypes {
		return "..."
	}
	for c, err := range e.Children() {
		if err != nil {
			break
		}
		switch c.Tag() {
		case dw.TagTemplateTypeParameter:
			if t, err := c.ValueType(); err == nil && !t.IsZero() {
				b.WriteString(t.String())
				b.WriteString("<" + t.templateArguments(depth+1) + ">")
			}
			b.WriteByte(',')
		case dw.TagTemplateValueParameter:
			n, _, _ := c.Number(dw.AttrConstValue)
			fmt.Fprintf(&b, "%d,", n)
		case dw.TagGNUTemplateParameterPack:
			b.WriteString(c.templateArguments(depth + 1))
		}
		if b.Len() > maxName {
			break
		}
	}
	return b.String()
}

// isSameKind reports whether a declaration may be completed by a definition: a class may be
// declared as a structure.
func isSameKind(a, b dw.Tag) bool {
	return a == b || kindOfTag[a] == KindStructure && kindOfTag[b] == KindStructure
}

// Globals are the variables that a name refers to, global ones and static ones of
// functions: by the name alone, or with the namespaces and classes around it.
func (r *Reader) Globals(name string) ([]Entry, error) {
	return r.definitionsNamed(name, false)
}

// TypesNamed are the definitions of types of a name, which may have the namespaces and
// classes around it.
func (r *Reader) TypesNamed(name string) ([]Entry, error) {
	return r.definitionsNamed(name, true)
}

// definitionsNamed are the definitions of types or of variables that a name refers to, with or
// without its scopes.
func (r *Reader) definitionsNamed(name string, isType bool) (list []Entry, err error) {
	err = r.protect(func() error {
		if r.generated != nil {
			list = r.generatedNamed(name, isType)
			return nil
		}
		known, err := r.defined.get(r.findDefinitions)
		if err != nil {
			return err
		}
		index := known.variables
		if isType {
			index = known.types
		}
		for _, e := range known.entries(index, lastName(name)) {
			if e.Name() == name || e.QualifiedName() == name {
				list = append(list, e)
			}
		}
		return nil
	})
	return list, err
}

// lastName is the part of a name after its last :: outside brackets.
func lastName(name string) string {
	depth, start := 0, 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '<', '(', '[', '{':
			depth++
		case '>', ')', ']', '}':
			depth--
		case ':':
			if depth == 0 && i+1 < len(name) && name[i+1] == ':' {
				start = i + 2
			}
		}
	}
	return name[start:]
}

// entries are the entries of a name.
func (d *definitions) entries(index map[uint64][]entryKey, name string) (list []Entry) {
	for _, k := range index[d.hash([]byte(name))] {
		if e, err := k.entry(); err == nil && e.Name() == name {
			list = append(list, e)
		}
	}
	return list
}

// findDefinitions searches the entries of every unit outside functions, and the variables
// inside functions that have a fixed address. A unit that cannot be read is a problem.
func (r *Reader) findDefinitions() (definitions, error) {
	d := definitions{maphash.MakeSeed(), map[uint64][]entryKey{}, map[uint64][]entryKey{}, map[uint64]entryKey{}, map[uint64]entryKey{}}
	units := r.everyUnit()
	if t, err := r.main.typeSection(); err == nil {
		units = append(units[:len(units):len(units)], t.units...)
	}
	if s, err := r.main.supplement(); err == nil && s != nil {
		units = append(units[:len(units):len(units)], s.everyUnit()...)
	}
	for _, u := range units {
		b, err := u.open()
		if err == nil && u.file == r.main {
			b, err = r.splitOf(b)
		}
		if err == nil {
			err = b.define(&d)
		}
		if err != nil {
			r.failedUnit(u, err)
		}
	}
	size := 0
	for _, m := range []map[uint64][]entryKey{d.types, d.variables} {
		for _, list := range m {
			size += 48 + sizeOf[entryKey](len(list))
		}
	}
	size += (len(d.goTypes) + len(d.vtables)) * 48
	r.main.addKept(size)
	return d, nil
}

// addDynamic adds an entry that identifies the type of an object at run time.
func (d *definitions) addDynamic(e Entry, isType bool) {
	switch {
	case isType && e.b.languageOf() == dw.LangGo:
		v, ok, err := e.own(dw.AttrGoRuntimeType)
		if err != nil || !ok {
			return
		}
		n, isConstant := v.constant()
		if v.isAddress() {
			n, err = e.b.address(&v)
			isConstant = err == nil
		}
		if isConstant && n != 0 {
			d.goTypes[n] = entryKey{e.b.unit, e.off}
		}
	case e.Tag() == dw.TagVariable && e.b.languageOf() == dw.LangRust:
		if address, ok := e.fixedAddress(); ok && strings.HasSuffix(e.Name(), "{vtable}") {
			d.vtables[address] = entryKey{e.b.unit, e.off}
		}
	}
}

// GoType is the type with a number of Go's runtime, its DW_AT_go_runtime_type; the zero
// Entry is none.
func (r *Reader) GoType(n uint64) Entry {
	return r.dynamic(func(d *definitions) (entryKey, bool) { k, ok := d.goTypes[n]; return k, ok })
}

// ImplementedBy is the type that a vtable of a Rust trait is for, by the vtable's address:
// DW_AT_containing_type of the vtable's type. The zero Entry is none.
func (r *Reader) ImplementedBy(vtable uint64) Entry {
	table := r.dynamic(func(d *definitions) (entryKey, bool) { k, ok := d.vtables[vtable]; return k, ok })
	if table.IsZero() {
		return table
	}
	t, err := table.Type()
	if err != nil || t.IsZero() {
		return Entry{}
	}
	if t, err = t.Reference(dw.AttrContainingType); err != nil {
		return Entry{}
	}
	return t
}

func (r *Reader) dynamic(find func(*definitions) (entryKey, bool)) Entry {
	known, err := r.defined.get(r.findDefinitions)
	if err != nil {
		return Entry{}
	}
	k, ok := find(&known)
	if !ok {
		return Entry{}
	}
	e, err := k.entry()
	if err != nil {
		return Entry{}
	}
	return e
}

// define adds the definitions of a unit.
func (b *body) define(d *definitions) error {
	entries := b.descend(b.first)
	for entries.next() {
		e, tag := entries.entry, entries.entry.Tag()
		kind, isType := kindOfTag[tag]
		d.addDynamic(e, isType)
		switch {
		case tag == dw.TagVariable:
			d.add(d.variables, e, false)
		case isType && kind != KindPointer && kind != KindQualified && kind != KindArray && kind != KindSubroutine:
			d.add(d.types, e, true)
		}
		if tag != b.tag && !holdsDefinitions(tag) {
			entries.skip()
		}
	}
	return entries.err
}

// holdsDefinitions reports whether definitions may be inside an entry.
func holdsDefinitions(tag dw.Tag) bool { return isSpace(tag) || tag == dw.TagCommonBlock }

// add adds an entry that has a name and is no declaration. Variables must have one address.
func (d *definitions) add(index map[uint64][]entryKey, e Entry, isType bool) {
	if isDeclaration, err := e.hasFlag(dw.AttrDeclaration); isDeclaration || err != nil {
		return
	}
	if !isType && !e.IsStatic() {
		return
	}
	v, owner, ok, err := e.find(dw.AttrName)
	if err != nil || !ok {
		return
	}
	name, err := owner.b.text(&v)
	if err != nil || len(name) == 0 {
		return
	}
	key := d.hash(name)
	if len(index[key]) < maxDefinitions {
		index[key] = append(index[key], entryKey{e.b.unit, e.off})
	}
}

// IsStatic reports whether a variable has one place for all frames, or a constant as its
// value outside of functions.
func (e Entry) IsStatic() bool {
	if _, ok := e.fixedAddress(); ok {
		return true
	}
	v, ok, err := e.own(dw.AttrLocation)
	if err != nil {
		return false
	}
	if !ok {
		return e.Has(dw.AttrConstValue) && e.Has(dw.AttrExternal)
	}
	if !v.isBlock() || len(v.b) == 0 {
		return false
	}
	switch last := v.b[len(v.b)-1]; last { // thread-local storage
	case dw.OpFormTLSAddress, dw.OpGNUPushTLSAddress:
		return true
	}
	return false
}
