// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/dw"
)

// This file spells types as their languages write them.

// QualifiedName is the entry's name with the namespaces and classes around it, up to the
// innermost function.
func (e Entry) QualifiedName() string {
	name := e.Name()
	entry := e
	if v, ok, err := e.own(dw.AttrSpecification); ok && err == nil {
		if declaration, err := e.b.follow(&v); err == nil {
			entry = declaration // a definition outside its class belongs to the scope of its declaration
		}
	}
	if !hasScopedNames(entry.b.languageOf()) {
		return name
	}
	return entry.b.qualify(name, entry.off, false)
}

// Around is the class or the namespace around the entry, or around the declaration that it
// completes or is an instance of; the zero Entry where there is none.
func (e Entry) Around() (Entry, error) {
	for range maxOrigins {
		next, err := e.Origin()
		if err != nil {
			return Entry{}, err
		}
		if next.IsZero() {
			break
		}
		e = next
	}
	list, tags, err := e.b.spacesAround(uint32(e.off - e.b.offset))
	if err != nil || len(list) == 0 || !isSpace(tags[len(tags)-1]) {
		return Entry{}, err
	}
	return e.b.entryAt(e.b.offset + uint64(list[len(list)-1]))
}

const (
	maxSpelled   = 32   // nested types that are spelled
	maxSpelling  = 4096 // bytes of a spelling
	maxArguments = 64   // of a function
)

// String is the type in the syntax of its language.
func (t *Type) String() string {
	if t.IsZero() {
		return t.Name
	}
	name, _ := t.spelled.get(func() (string, error) {
		s := speller{isRust: t.b.languageOf() == dw.LangRust, isC: !hasScopedNames(t.b.languageOf())}
		text := s.spell(t, "", 0)
		if len(text) > maxSpelling {
			text = text[:maxSpelling] + "..."
		}
		t.b.file.addKept(len(text))
		return text, nil
	})
	return name
}

// speller spells one type.
type speller struct{ isRust, isC bool }

// typeWords are the keywords of types that may have no name.
var typeWords = map[dw.Tag]string{
	dw.TagStructureType: "struct", dw.TagClassType: "class", dw.TagUnionType: "union", dw.TagEnumerationType: "enum", dw.TagInterfaceType: "interface",
}

// qualifiers are the keywords of qualified types. Others are not shown.
var qualifiers = map[dw.Tag]string{
	dw.TagConstType: "const", dw.TagVolatileType: "volatile", dw.TagRestrictType: "restrict", dw.TagAtomicType: "_Atomic",
}

// spell returns the declaration of a declarator with a type, in C's syntax: the declarator
// of a pointer target is "*".
func (s *speller) spell(t *Type, declarator string, depth int) string {
	if depth > maxSpelled || len(declarator) > maxSpelling {
		return "..."
	}
	if t.IsZero() {
		if t.Name != "void" {
			return joined(t.Name, declarator)
		}
		return joined("void", declarator)
	}
	if t.Name != "" && t.Kind != KindQualified {
		name := t.QualifiedName()
		if word := typeWords[t.Tag()]; word != "" && s.isC && t.b.languageOf() != dw.LangGo {
			name = word + " " + name
		}
		return joined(name, declarator)
	}
	switch t.Kind {
	case KindPointer:
		if s.isRust { // types that rustc does not name are inside others, and whether they are mutable is unknown
			return joined("*mut "+s.spellElement(t, "", depth), declarator)
		}
		return s.spellElement(t, "*"+declarator, depth)
	case KindReference:
		return s.spellElement(t, "&"+declarator, depth)
	case KindRvalueReference:
		return s.spellElement(t, "&&"+declarator, depth)
	case KindMemberPointer:
		return s.spellElement(t, s.containing(t, depth)+"::*"+declarator, depth)
	case KindQualified:
		return s.spellQualified(t, declarator, depth)
	case KindArray:
		return s.spellArray(t, declarator, depth)
	case KindSubroutine:
		return s.spellElement(t, bracketed(declarator)+s.arguments(t, depth), depth)
	case KindStructure, KindUnion, KindEnumeration:
		return joined(typeWords[t.Tag()]+" {...}", declarator)
	}
	e, err := t.Element()
	if err != nil || e.Kind == KindVoid {
		return joined("<unnamed type>", declarator)
	}
	return s.spell(e, declarator, depth+1)
}

// joined puts a declarator after a name.
func joined(name, declarator string) string {
	if declarator == "" {
		return name
	}
	return name + " " + declarator
}

// bracketed puts a declarator of a pointer in brackets.
func bracketed(declarator string) string {
	if declarator == "" || declarator[0] == '[' || declarator[0] == '(' {
		return declarator
	}
	return "(" + declarator + ")"
}

func (s *speller) spellElement(t *Type, declarator string, depth int) string {
	e, err := t.Element()
	if err != nil {
		return joined("<unreadable type>", declarator)
	}
	return s.spell(e, declarator, depth+1)
}

func (s *speller) containing(t *Type, depth int) string {
	c, err := t.Reference(dw.AttrContainingType)
	if err != nil || c.IsZero() {
		return ""
	}
	class, err := c.AsType()
	if err != nil {
		return ""
	}
	return s.spell(class, "", depth+1)
}

// spellQualified writes a qualifier before the type, and after the star of a pointer.
func (s *speller) spellQualified(t *Type, declarator string, depth int) string {
	word := qualifiers[t.Tag()]
	e, err := t.Element()
	if err != nil || word == "" {
		return s.spellElement(t, declarator, depth)
	}
	inner := e
	for range maxSeenThrough {
		if inner.Kind != KindQualified {
			break
		}
		if inner, err = inner.Element(); err != nil {
			break
		}
	}
	switch inner.Kind {
	case KindPointer, KindMemberPointer, KindReference, KindRvalueReference:
		if inner.Name == "" {
			return s.spell(e, joinedBefore(word, declarator), depth+1)
		}
	}
	return word + " " + s.spell(e, declarator, depth+1)
}

// joinedBefore puts a qualifier of a pointer after its star.
func joinedBefore(word, declarator string) string {
	if declarator == "" || declarator[0] == '[' || declarator[0] == ')' {
		return " " + word + declarator
	}
	return " " + word + " " + strings.TrimPrefix(declarator, " ")
}

func (s *speller) spellArray(t *Type, declarator string, depth int) string {
	dimensions, err := t.Dimensions()
	if err != nil {
		return joined("<unreadable type>", declarator)
	}
	if s.isRust {
		text := s.spellElement(t, "", depth)
		for i := len(dimensions) - 1; i >= 0; i-- {
			if n, ok := dimensions[i].Elements(); ok {
				text = "[" + text + "; " + strconv.FormatUint(n, 10) + "]"
			} else {
				text = "[" + text + "]"
			}
		}
		return text
	}
	if t.IsVector {
		for i := range dimensions {
			n, _ := dimensions[i].Elements()
			declarator = " __attribute__ ((vector_size(" + strconv.FormatUint(n, 10) + ")))" + declarator
		}
		return strings.Replace(s.spellElement(t, declarator, depth), "  ", " ", 1)
	}
	text := bracketed(declarator)
	for i := range dimensions {
		text += "["
		if n, ok := dimensions[i].Elements(); ok {
			text += strconv.FormatUint(n, 10)
		}
		text += "]"
	}
	return s.spellElement(t, text, depth)
}

// Elements is the number of elements of the dimension; false where the type alone does not
// tell.
func (d *Dimension) Elements() (uint64, bool) {
	switch {
	case d.Count.IsKnown && d.Count.Value >= 0:
		return uint64(d.Count.Value), true
	case d.Upper.IsKnown && d.Lower.IsKnown && d.Upper.Value >= d.Lower.Value-1:
		return uint64(d.Upper.Value-d.Lower.Value) + 1, true
	}
	return 0, false
}

// arguments are the arguments of a function type.
func (s *speller) arguments(t *Type, depth int) string {
	var list []string
	for c, err := range t.Children() {
		if err != nil || len(list) == maxArguments {
			break
		}
		switch c.Tag() {
		case dw.TagFormalParameter:
			e, err := c.ValueType()
			if err != nil {
				return "(...)"
			}
			list = append(list, s.spell(e, "", depth+1))
		case dw.TagUnspecifiedParameters:
			list = append(list, "...")
		}
	}
	if len(list) == 0 {
		return "(void)"
	}
	return "(" + strings.Join(list, ", ") + ")"
}
