// SPDX-License-Identifier: Apache-2.0

package codeview

import (
	"fmt"
	"strings"
)

// Bounds of names.
const (
	maxNested  = 32   // types in one another
	maxSpelled = 1024 // types in one name
	maxName    = 4096 // bytes
)

const unreadable = "<unreadable type>"

// Name returns the name of a type as undecorated names have it: "char const *", "int (*)(double)",
// "A::B &". Names of classes have no keyword before them. What cannot be read is named so.
func (t *Types) Name(index TypeIndex) string {
	return bounded((&spelling{Types: t}).spell(index, "", 0))
}

// spelling is a name that is being made.
type spelling struct {
	*Types
	count int // of the types in it so far
}

// bounded cuts names that hostile records make long.
func bounded(name string) string {
	if len(name) > maxName {
		return name[:maxName] + "..."
	}
	return name
}

// spell returns the declaration of a declarator: of the target of a pointer it is "*".
func (t *spelling) spell(index TypeIndex, declarator string, depth int) string {
	if t.count++; t.count > maxSpelled || depth > maxNested || len(declarator) > maxName {
		return "..."
	}
	if index < t.first {
		return spellSimple(index, declarator)
	}
	kind, data, err := t.Record(index)
	if err != nil {
		return joined(unreadable, declarator)
	}
	if spell := spellers[kind]; spell != nil {
		return spell(t, kind, data, declarator, depth)
	}
	return joined(fmt.Sprintf("<type of kind %#x>", kind), declarator)
}

func spellSimple(index TypeIndex, declarator string) string {
	if index == Nullptr {
		return joined("std::nullptr_t", declarator)
	}
	s, ok := SimpleType(index)
	if !ok {
		return joined(fmt.Sprintf("<simple type %#x>", uint32(index)), declarator)
	}
	if s.PointerSize > 0 {
		declarator = "*" + declarator
	}
	return joined(s.Name, declarator)
}

// joined puts a declarator behind a name.
func joined(name, declarator string) string {
	if declarator == "" || declarator[0] == '[' {
		return name + declarator
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

type speller func(t *spelling, kind uint16, data []byte, declarator string, depth int) string

// spellers spell the types of the kinds of records; set by init, for they call spell.
var spellers map[uint16]speller

func init() {
	spellers = map[uint16]speller{
		LFModifier: spellModifier, LFPointer: spellPointer, LFArray: spellArray, LFBitField: spellBitField,
		LFProcedure: spellProcedure, LFMemberFunc: spellProcedure,
		LFVTableShape: spellShape, LFFieldList: spellFieldList, LFStringID: spellString,
		LFFuncID: spellFunction, LFMFuncID: spellFunction, LFVFTable: spellVFTable,
	}
	for kind := range plainKinds {
		spellers[kind] = spellUDT
	}
}

// qualifierWords are the words of qualifiers, in the order in which they are written.
var qualifierWords = []struct {
	is   Qualifiers
	word string
}{{Const, "const"}, {Volatile, "volatile"}, {Unaligned, "__unaligned"}, {Restrict, "__restrict"}}

// String returns the words of qualifiers with blanks between them.
func (q Qualifiers) String() string {
	var words []string
	for _, x := range qualifierWords {
		if q&x.is != 0 {
			words = append(words, x.word)
		}
	}
	return strings.Join(words, " ")
}

// before puts qualifiers before a declarator.
func (q Qualifiers) before(declarator string) string {
	words := q.String()
	if words == "" || declarator == "" {
		return words + declarator
	}
	return words + " " + declarator
}

func spellModifier(t *spelling, _ uint16, data []byte, declarator string, depth int) string {
	m, err := DecodeModifier(data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	return t.spell(m.Target, m.Qualifiers.before(declarator), depth+1)
}

// sigils are the signs of pointers by their mode.
var sigils = [8]string{ModePointer: "*", ModeReference: "&", ModeRvalueReference: "&&", ModeDataMember: "*", ModeMemberFunction: "*"}

func spellPointer(t *spelling, _ uint16, data []byte, declarator string, depth int) string {
	p, err := DecodePointer(data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	sign := sigils[p.Mode]
	if p.Class != 0 {
		sign = t.spell(p.Class, "", depth+1) + "::" + sign
	}
	return t.spell(p.Target, sign+p.Qualifiers.before(declarator), depth+1)
}

func spellArray(t *spelling, _ uint16, data []byte, declarator string, depth int) string {
	a, err := DecodeArray(data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	extent := "[]"
	if size, ok := t.Size(a.Element); ok && size > 0 && a.Size > 0 {
		extent = fmt.Sprintf("[%d]", a.Size/size)
	}
	return t.spell(a.Element, bracketed(declarator)+extent, depth+1)
}

func spellBitField(t *spelling, _ uint16, data []byte, declarator string, depth int) string {
	b, err := DecodeBitField(data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	return t.spell(b.Base, declarator, depth+1) + fmt.Sprintf(" : %d", b.Length)
}

func spellProcedure(t *spelling, kind uint16, data []byte, declarator string, depth int) string {
	p, err := DecodeProcedure(kind, data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	after := bracketed(declarator) + "(" + t.arguments(p.Arguments, depth) + ")"
	if this, ok := t.pointee(p.This); ok {
		after = strings.TrimRight(after+" "+this.String(), " ")
	}
	return joined(t.spell(p.Return, "", depth+1), after)
}

// pointee are the qualifiers of the target of a pointer.
func (t *Types) pointee(index TypeIndex) (Qualifiers, bool) {
	kind, data, err := t.Record(index)
	if err != nil || kind != LFPointer {
		return 0, false
	}
	p, err := DecodePointer(data)
	if err != nil {
		return 0, false
	}
	if kind, data, err = t.Record(p.Target); err != nil || kind != LFModifier {
		return 0, false
	}
	m, err := DecodeModifier(data)
	return m.Qualifiers, err == nil
}

// arguments are the types of a list of arguments. The last one is 0 where others may follow.
func (t *spelling) arguments(list TypeIndex, depth int) string {
	kind, data, err := t.Record(list)
	if err != nil || kind != LFArgList {
		return ""
	}
	types, err := DecodeArguments(data)
	if err != nil {
		return unreadable
	}
	if len(types) == 0 {
		return "void"
	}
	var b strings.Builder
	for i, argument := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxName {
			b.WriteString("...")
			break
		}
		if argument == NoType {
			b.WriteString("...")
			continue
		}
		b.WriteString(t.spell(argument, "", depth+1))
	}
	return b.String()
}

func spellUDT(_ *spelling, kind uint16, data []byte, declarator string, _ int) string {
	u, err := DecodeUDT(kind, data)
	if err != nil {
		return joined(unreadable, declarator)
	}
	return joined(u.Name, declarator)
}

func spellShape(_ *spelling, _ uint16, data []byte, declarator string, _ int) string {
	c := cursor{rest: data}
	return joined(fmt.Sprintf("<vftable %d methods>", c.u16()), declarator)
}

func spellFieldList(_ *spelling, _ uint16, _ []byte, declarator string, _ int) string {
	return joined("<field list>", declarator)
}

func spellString(_ *spelling, _ uint16, data []byte, declarator string, _ int) string {
	c := cursor{rest: data}
	c.index()
	return joined(c.text(), declarator)
}

func spellVFTable(_ *spelling, _ uint16, data []byte, declarator string, _ int) string {
	c := cursor{rest: data}
	c.take(16)
	return joined(c.text(), declarator)
}

func spellFunction(t *spelling, kind uint16, data []byte, declarator string, depth int) string {
	return joined(t.functionName(kind, data, depth), declarator)
}

// functionName is the qualified name of a function by the parts of its record of IPI. The scope of
// LF_FUNC_ID is a text of IPI, of LF_MFUNC_ID it is a class of TPI.
func (t *spelling) functionName(kind uint16, data []byte, depth int) string {
	c := cursor{rest: data}
	scope := c.index()
	c.index()
	name := c.text()
	if scope == 0 {
		return name
	}
	scopes := t
	if kind == LFMFuncID && t.types != nil {
		scopes = &spelling{Types: t.types, count: t.count}
	}
	return scopes.spell(scope, "", depth+1) + "::" + name
}

// FunctionName returns the qualified name of a function by its record of IPI: LF_FUNC_ID or
// LF_MFUNC_ID; "" where it has none.
func (t *Types) FunctionName(index TypeIndex) string {
	kind, data, err := t.Record(index)
	if err != nil || kind != LFFuncID && kind != LFMFuncID {
		return ""
	}
	return bounded((&spelling{Types: t}).functionName(kind, data, 0))
}

// FunctionType returns the type of TPI of a function by its record of IPI; 0 where it has none.
func (t *Types) FunctionType(index TypeIndex) TypeIndex {
	kind, data, err := t.Record(index)
	if err != nil || kind != LFFuncID && kind != LFMFuncID {
		return 0
	}
	c := cursor{rest: data}
	c.index()
	return c.index()
}

// Parameters returns the parameters' types of a function type of TPI, such as "int, char const *";
// "void" where there are none, and "" for another type.
func (t *Types) Parameters(index TypeIndex) string {
	kind, data, err := t.Record(index)
	if err != nil || kind != LFProcedure && kind != LFMemberFunc {
		return ""
	}
	p, err := DecodeProcedure(kind, data)
	if err != nil {
		return ""
	}
	return bounded((&spelling{Types: t}).arguments(p.Arguments, 0))
}
