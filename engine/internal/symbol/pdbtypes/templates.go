// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/internal/dw"
)

// This file finds the arguments of templates in the names of classes, which have them as text.

// maxTemplateArguments bounds the arguments of a class.
const maxTemplateArguments = 256

// templateArguments writes the arguments of a template by the name of the class. One that is not
// understood has a type of its text.
func (u *unit) templateArguments(name string) {
	open := strings.IndexByte(name, '<')
	if open <= 0 || !strings.HasSuffix(name, ">") {
		return
	}
	for i, argument := range splitArguments(name[open+1 : len(name)-1]) {
		if i == maxTemplateArguments {
			return
		}
		if n, err := strconv.ParseInt(argument, 0, 64); err == nil {
			u.entry(dw.TagTemplateValueParameter, false, negative(dw.AttrConstValue, n))
			continue
		}
		u.templateType(argument)
	}
}

// splitArguments splits a list at the commas outside of brackets.
func splitArguments(list string) (arguments []string) {
	depth, start := 0, 0
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '<', '(', '[', '{':
			depth++
		case '>', ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				arguments = append(arguments, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(list[start:]); last != "" || len(arguments) > 0 {
		arguments = append(arguments, last)
	}
	return arguments
}

// templateType writes an argument that is a type, behind the types that it is made of.
func (u *unit) templateType(argument string) {
	base, suffixes := dissect(argument)
	index, ok := u.typeNamed(base)
	if !ok {
		at := u.here()
		u.entry(dw.TagUnspecifiedType, false, named(argument))
		u.entry(dw.TagTemplateTypeParameter, false, attr{name: dw.AttrType, form: dw.FormRef4})
		u.fill(at)
		return
	}
	attrs := u.typed(nil, index)
	for _, tag := range suffixes {
		at := u.here()
		u.entry(tag, false, attrs...)
		attrs = []attr{{name: dw.AttrType, form: dw.FormRef4, n: uint64(u.place(at))}}
	}
	u.entry(dw.TagTemplateTypeParameter, false, attrs...)
}

// placeIndex numbers entries that have no record: no type has such an index.
const placeIndex = 1 << 31

// place gives an entry an index, for references.
func (u *unit) place(offset uint32) codeview.TypeIndex {
	index := codeview.TypeIndex(placeIndex | offset)
	u.local[index] = offset
	return index
}

// endings are the ends of spelled types, and the entries for them.
var endings = []struct {
	text string
	tag  dw.Tag
}{{"&&", dw.TagRvalueReferenceType}, {"&", dw.TagReferenceType}, {"*", dw.TagPointerType}, {"const", dw.TagConstType}, {"volatile", dw.TagVolatileType}}

// beginnings are words before a spelled type: some name entries, others are left out.
var beginnings = []struct {
	text string
	tag  dw.Tag
}{{"const ", dw.TagConstType}, {"volatile ", dw.TagVolatileType}, {"struct ", 0}, {"class ", 0}, {"union ", 0}, {"enum ", 0}}

// dissect splits a spelled type into the name at its core, and the entries around that, the
// innermost first.
func dissect(spelled string) (core string, around []dw.Tag) {
	var outer []dw.Tag // from the outermost on
	core = strings.TrimSpace(spelled)
	for again := true; again && len(outer) < maxScopes; {
		again = false
		for _, e := range endings {
			rest, ok := strings.CutSuffix(core, e.text)
			if ok && rest != "" && (e.text[0] == '&' || e.text[0] == '*' || strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, "*")) {
				core, outer, again = strings.TrimSpace(rest), append(outer, e.tag), true
				break
			}
		}
	}
	for again := true; again; {
		again = false
		for _, b := range beginnings {
			if rest, ok := strings.CutPrefix(core, b.text); ok {
				if core, again = rest, true; b.tag != 0 {
					outer = append(outer, b.tag)
				}
				break
			}
		}
	}
	for i := len(outer) - 1; i >= 0; i-- {
		around = append(around, outer[i])
	}
	return core, around
}

// typeNamed is the type of a name.
func (m *maker) typeNamed(name string) (codeview.TypeIndex, bool) {
	if index, ok := codeview.SimpleNamed(name); ok {
		return index, true
	}
	if list := m.types.Named(name); len(list) > 0 {
		return list[0], true
	}
	return 0, false
}
