// SPDX-License-Identifier: Apache-2.0

package pdbtypes

import (
	"encoding/binary"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
)

// This file writes types. Classes, structures, unions and enumerations have type units, whose
// signature is the index of the record; the others are in the unit that refers to them.

// typed appends the attribute that refers to a type; void has none.
func (u *unit) typed(attrs []attr, index codeview.TypeIndex) []attr {
	if index == codeview.Void || index == codeview.NoType {
		return attrs
	}
	return append(attrs, u.reference(dw.AttrType, index))
}

// reference is an attribute that refers to a type.
func (u *unit) reference(name dw.Attr, index codeview.TypeIndex) attr {
	if kind, _, err := u.types.Record(index); err == nil && codeview.IsUDT(kind) {
		if definition := u.types.Definition(index); definition != 0 {
			index = definition
		}
		return signature(name, index)
	}
	if _, isKnown := u.local[index]; !isKnown {
		u.local[index] = 0
		u.queue = append(u.queue, index)
	}
	return attr{name: name, form: dw.FormRef4, n: uint64(index)}
}

// writeLocal writes a type of the unit itself.
func (u *unit) writeLocal(index codeview.TypeIndex) {
	if s, ok := codeview.SimpleType(index); ok {
		u.local[index] = u.here()
		u.writeSimple(index, &s)
		return
	}
	kind, data, err := u.types.Record(index)
	write := writers[kind]
	if err != nil || write == nil || !write(u, index, kind, data) {
		u.local[index] = u.here()
		u.entry(dw.TagUnspecifiedType, false, named(u.types.Name(index)))
	}
}

// writers write the types of the kinds of records. They set the type's offset, and are false
// where the record cannot be read, before anything is written.
var writers = map[uint16]func(u *unit, index codeview.TypeIndex, kind uint16, data []byte) bool{
	codeview.LFModifier: writeModifier, codeview.LFPointer: writePointer, codeview.LFArray: writeArray,
	codeview.LFProcedure: writeProcedure, codeview.LFMemberFunc: writeProcedure, codeview.LFVTableShape: writeVTableShape,
	codeview.LFBitField: writeBitField,
}

func (u *unit) writeSimple(index codeview.TypeIndex, s *codeview.Simple) {
	switch {
	case index == codeview.Nullptr:
		u.entry(dw.TagUnspecifiedType, false, named("decltype(nullptr)"), number(dw.AttrByteSize, u.machine.addressSize))
	case s.PointerSize > 0:
		u.entry(dw.TagPointerType, false, u.typed([]attr{number(dw.AttrByteSize, s.PointerSize)}, index&0xff)...)
	case index == float128 && u.machine.hasX87:
		array := u.here()
		u.entry(dw.TagArrayType, true, u.typed(nil, unsignedChar)...)
		u.entry(dw.TagSubrangeType, false, number(dw.AttrCount, s.Size))
		u.end()
		u.local[index] = u.here()
		u.entry(dw.TagTypedef, false, named("long double or __float128"), attr{name: dw.AttrType, form: dw.FormRef4})
		u.fill(array)
	case s.Size == 0:
		u.entry(dw.TagUnspecifiedType, false, named(s.Name))
	default:
		u.entry(dw.TagBaseType, false, named(s.Name), number(dw.AttrByteSize, s.Size), number(dw.AttrEncoding, uint64(s.Encoding)))
	}
}

// float128 is a real number of 16 bytes. LLVM writes it for both such types of MinGW on x86, of which
// one has its value in 10 bytes. Which one it is cannot be told, so its bytes are shown.
const (
	float128     codeview.TypeIndex = 0x43
	unsignedChar codeview.TypeIndex = 0x20
)

// qualifierTags are the entries of qualifiers, in the order in which they are around a type.
// DWARF has none for __unaligned.
var qualifierTags = []struct {
	is  codeview.Qualifiers
	tag dw.Tag
}{{codeview.Restrict, dw.TagRestrictType}, {codeview.Volatile, dw.TagVolatileType}, {codeview.Const, dw.TagConstType}}

// qualify writes qualifiers around the type at the offset inner, and returns the offset of the
// outermost entry.
func (u *unit) qualify(q codeview.Qualifiers, inner uint32) uint32 {
	for _, x := range qualifierTags {
		if q&x.is != 0 {
			at := u.here()
			u.entry(x.tag, false, attr{name: dw.AttrType, form: dw.FormRef4})
			u.fill(inner)
			inner = at
		}
	}
	return inner
}

// fill puts an offset into the hole that was made last.
func (u *unit) fill(offset uint32) {
	last := len(u.holes) - 1
	binary.LittleEndian.PutUint32(u.out.Info[u.holes[last].offset:], offset)
	u.holes = u.holes[:last]
}

func writeModifier(u *unit, index codeview.TypeIndex, _ uint16, data []byte) bool {
	m, err := codeview.DecodeModifier(data)
	if err != nil {
		return false
	}
	var innermost dw.Tag
	rest := m.Qualifiers
	for _, x := range qualifierTags {
		if rest&x.is != 0 {
			innermost, rest = x.tag, rest&^x.is
			break
		}
	}
	if innermost == 0 { // __unaligned alone
		innermost = dw.TagPackedType
	}
	at := u.here()
	u.entry(innermost, false, u.typed(nil, m.Target)...)
	u.local[index] = u.qualify(rest, at)
	return true
}

// pointerTags are the entries of pointers by their mode.
var pointerTags = [8]dw.Tag{
	codeview.ModePointer: dw.TagPointerType, codeview.ModeReference: dw.TagReferenceType, codeview.ModeRvalueReference: dw.TagRvalueReferenceType,
	codeview.ModeDataMember: dw.TagPtrToMemberType, codeview.ModeMemberFunction: dw.TagPtrToMemberType,
}

func writePointer(u *unit, index codeview.TypeIndex, _ uint16, data []byte) bool {
	p, err := codeview.DecodePointer(data)
	if err != nil || pointerTags[p.Mode] == 0 {
		return false
	}
	var attrs []attr
	if p.Size > 0 {
		attrs = append(attrs, number(dw.AttrByteSize, uint64(p.Size)))
	}
	attrs = u.typed(attrs, p.Target)
	if p.Class != 0 {
		attrs = append(attrs, u.reference(dw.AttrContainingType, p.Class))
	}
	at := u.here()
	u.entry(pointerTags[p.Mode], false, attrs...)
	u.local[index] = u.qualify(p.Qualifiers, at)
	return true
}

// maxDimensions bounds the dimensions of an array that are written as one.
const maxDimensions = 16

func writeArray(u *unit, index codeview.TypeIndex, _ uint16, data []byte) bool {
	a, err := codeview.DecodeArray(data)
	if err != nil {
		return false
	}
	var counts []uint64 // of each dimension; unknownCount where it is unknown
	for {
		count := uint64(unknownCount)
		if size, ok := u.types.Size(a.Element); ok && size > 0 {
			count = a.Size / size
		}
		counts = append(counts, count)
		kind, data, err := u.types.Record(a.Element)
		if err != nil || kind != codeview.LFArray || len(counts) == maxDimensions {
			break
		}
		inner, err := codeview.DecodeArray(data)
		if err != nil {
			break
		}
		a = inner
	}
	u.local[index] = u.here()
	u.entry(dw.TagArrayType, true, u.typed(nil, a.Element)...)
	for _, count := range counts {
		if count == unknownCount {
			u.entry(dw.TagSubrangeType, false)
		} else {
			u.entry(dw.TagSubrangeType, false, number(dw.AttrCount, count))
		}
	}
	u.end()
	return true
}

const unknownCount = 1<<64 - 1

func writeProcedure(u *unit, index codeview.TypeIndex, kind uint16, data []byte) bool {
	p, err := codeview.DecodeProcedure(kind, data)
	if err != nil {
		return false
	}
	u.local[index] = u.here()
	u.entry(dw.TagSubroutineType, true, u.typed(nil, p.Return)...)
	for _, argument := range u.arguments(p.Arguments) {
		if argument == codeview.NoType {
			u.entry(dw.TagUnspecifiedParameters, false)
		} else {
			u.entry(dw.TagFormalParameter, false, u.typed(nil, argument)...)
		}
	}
	u.end()
	return true
}

// arguments are the types of a list of arguments.
func (m *maker) arguments(list codeview.TypeIndex) []codeview.TypeIndex {
	kind, data, err := m.types.Record(list)
	if err != nil || kind != codeview.LFArgList {
		return nil
	}
	arguments, err := codeview.DecodeArguments(data)
	if err != nil {
		return nil
	}
	return arguments
}

// writeVTableShape writes the target of a pointer to a table of virtual functions: pointers to
// functions.
func writeVTableShape(u *unit, index codeview.TypeIndex, _ uint16, _ []byte) bool {
	function := u.here()
	u.entry(dw.TagSubroutineType, false)
	u.local[index] = u.here()
	u.entry(dw.TagPointerType, false, number(dw.AttrByteSize, u.machine.addressSize), attr{name: dw.AttrType, form: dw.FormRef4})
	u.fill(function)
	return true
}

func writeBitField(u *unit, index codeview.TypeIndex, _ uint16, data []byte) bool {
	b, err := codeview.DecodeBitField(data)
	if err != nil {
		return false
	}
	u.local[index] = u.here()
	u.entry(dw.TagTypedef, false, u.typed([]attr{named(u.types.Name(index))}, b.Base)...)
	return true
}

// udtTags are the entries of classes and their like.
var udtTags = map[uint16]dw.Tag{
	codeview.LFClass: dw.TagClassType, codeview.LFStructure: dw.TagStructureType, codeview.LFUnion: dw.TagUnionType,
	codeview.LFEnum: dw.TagEnumerationType, codeview.LFInterface: dw.TagInterfaceType,
}

// Type implements dwarf.Maker.
func (m *maker) Type(number uint64) (dwarf.GeneratedUnit, error) {
	index := codeview.TypeIndex(number) //nolint:gosec // as reference wrote it
	kind, data, err := m.types.Record(index)
	if err != nil {
		return dwarf.GeneratedUnit{}, err
	}
	c, err := codeview.DecodeUDT(kind, data)
	if err != nil {
		return dwarf.GeneratedUnit{}, err
	}
	u := m.newUnit(true, number)
	u.entry(dw.TagTypeUnit, true, attr{name: dw.AttrLanguage, form: dw.FormUdata, n: languageOf(&c)})
	name := u.enter(c.Name)
	binary.LittleEndian.PutUint32(u.out.Info[typeOffsetAt:], u.here())
	u.writeUDT(&c, name)
	for u.open > 1 {
		u.end()
	}
	return u.finish()
}

// languageOf is the language of a type: only C++ has unique names, by the conventions of
// Microsoft's compilers or of others.
func languageOf(c *codeview.UDT) uint64 {
	if c.UniqueName == "" && !strings.Contains(c.Name, "::") {
		return dw.LangC11
	}
	return dw.LangCPP14
}

// isItanium reports whether a class is laid out by the conventions that all but Microsoft's
// compilers follow.
func isItanium(c *codeview.UDT) bool { return strings.HasPrefix(c.UniqueName, "_Z") }

// enter writes the namespaces of a qualified name, and returns its last part. Whether a scope is a
// namespace or a class is not known, nor needed.
func (u *unit) enter(qualified string) (name string) {
	scopes := split(qualified)
	for _, scope := range scopes[:len(scopes)-1] {
		if isAnonymousSpace(scope) {
			u.entry(dw.TagNamespace, true)
		} else {
			u.entry(dw.TagNamespace, true, named(scope))
		}
	}
	return scopes[len(scopes)-1]
}

func isAnonymousSpace(scope string) bool {
	return scope == "`anonymous namespace'" || scope == "`anonymous-namespace'" || scope == "(anonymous namespace)"
}

// maxScopes bounds the scopes of a name: the rest is its last part.
const maxScopes = 32

// split splits a qualified name at the :: outside of brackets.
func split(name string) (parts []string) {
	depth, start := 0, 0
	for i := 0; i < len(name) && len(parts) < maxScopes; i++ {
		switch name[i] {
		case '<', '(', '[', '{':
			depth++
		case '>', ')', ']', '}':
			depth--
		case ':':
			if depth <= 0 && i > start && i+2 < len(name) && name[i+1] == ':' {
				parts = append(parts, name[start:i])
				start, i = i+2, i+1
			}
		}
	}
	return append(parts, name[start:])
}

// writeUDT writes a class, a structure, a union or an enumeration.
func (u *unit) writeUDT(c *codeview.UDT, name string) {
	var attrs []attr
	if name != "" && !strings.HasPrefix(name, "<unnamed-") && name != "__unnamed" {
		attrs = append(attrs, named(name))
	}
	switch {
	case c.IsForward():
		u.entry(udtTags[c.Kind], false, append(attrs, flag(dw.AttrDeclaration))...)
		return
	case c.Kind == codeview.LFEnum:
		u.writeEnum(c, attrs)
		return
	}
	u.entry(udtTags[c.Kind], true, append(attrs, number(dw.AttrByteSize, c.Size))...)
	u.templateArguments(name)
	if c.Fields != 0 {
		if err := u.types.EachField(c.Fields, func(f *codeview.Field) bool { u.writeField(c, f); return len(u.out.Info) < maxUnit }); err != nil {
			u.problem(err)
		}
	}
	u.end()
}

func (u *unit) writeEnum(c *codeview.UDT, attrs []attr) {
	size, _ := u.types.Size(c.Underlying)
	u.entry(dw.TagEnumerationType, true, u.typed(append(attrs, number(dw.AttrByteSize, size)), c.Underlying)...)
	simple, _ := codeview.SimpleType(c.Underlying)
	bits := 8 * min(size, 8)
	isSigned := simple.Encoding == dw.ATESigned || simple.Encoding == dw.ATESignedChar
	if c.Fields != 0 {
		if err := u.types.EachField(c.Fields, func(f *codeview.Field) bool {
			if f.Kind != codeview.LFEnumerate {
				return true
			}
			n, ok := f.Value.Uint64()
			if !ok {
				return true
			}
			value := number(dw.AttrConstValue, n&^(^uint64(0)<<bits))
			if isSigned { // LLVM writes both kinds of numbers for both kinds of enumerations
				value = negative(dw.AttrConstValue, int64(n<<(64-bits))>>(64-bits)) //nolint:gosec // two's complement
			}
			u.entry(dw.TagEnumerator, false, named(f.Name), value)
			return len(u.out.Info) < maxUnit
		}); err != nil {
			u.problem(err)
		}
	}
	u.end()
}

// writeField writes a part of a class. Methods are left out: values need none.
func (u *unit) writeField(c *codeview.UDT, f *codeview.Field) {
	switch f.Kind {
	case codeview.LFMember:
		u.writeMember(f)
	case codeview.LFStaticMember:
		u.entry(dw.TagVariable, false, u.typed([]attr{named(f.Name), flag(dw.AttrExternal), flag(dw.AttrDeclaration)}, f.Type)...)
	case codeview.LFBaseClass, codeview.LFBaseInterface:
		u.entry(dw.TagInheritance, false, u.typed([]attr{number(dw.AttrDataMemberLocation, f.Offset)}, f.Type)...)
	case codeview.LFVirtualBase: // bases have their own, which LFIndirectBase repeats
		u.entry(dw.TagInheritance, false, u.typed([]attr{
			expression(dw.AttrDataMemberLocation, virtualBase(isItanium(c), f)), number(dw.AttrVirtuality, 1),
		}, f.Type)...)
	case codeview.LFVTablePointer, codeview.LFVTableOffset:
		u.entry(dw.TagMember, false, u.typed([]attr{named("__vfptr"), number(dw.AttrDataMemberLocation, f.Offset), flag(dw.AttrArtificial)}, f.Type)...)
	case codeview.LFNestedType, codeview.LFNestedTypeEx:
		if f.Name != "" && f.Type != codeview.NoType {
			u.entry(dw.TagTypedef, false, u.typed([]attr{named(f.Name)}, f.Type)...)
		}
	}
}

func (u *unit) writeMember(f *codeview.Field) {
	attrs := []attr{named(f.Name)}
	kind, data, err := u.types.Record(f.Type)
	if err == nil && kind == codeview.LFBitField {
		if b, err := codeview.DecodeBitField(data); err == nil {
			u.entry(dw.TagMember, false, u.typed(append(attrs, number(dw.AttrBitSize, uint64(b.Length)),
				number(dw.AttrDataBitOffset, f.Offset*8+uint64(b.Position))), b.Base)...)
			return
		}
	}
	u.entry(dw.TagMember, false, u.typed(append(attrs, number(dw.AttrDataMemberLocation, f.Offset)), f.Type)...)
}

// virtualBase is the place of a virtual base, with the address of the object on the stack.
// Microsoft's compilers have a pointer to a table of the bases' distances from that pointer, 4
// bytes each; others have the distance from the object before the table of virtual functions.
func virtualBase(isItanium bool, f *codeview.Field) []byte {
	if isItanium {
		b := []byte{dw.OpDup, dw.OpDeref, dw.OpConstu}
		b = binary.AppendUvarint(b, 4*f.TableIndex) // as LLVM writes it, in such units
		return append(b, dw.OpMinus, dw.OpDeref, dw.OpPlus)
	}
	b := binary.AppendUvarint([]byte{dw.OpPlusUconst}, f.PointerOffset)
	b = append(b, dw.OpDup, dw.OpDeref, dw.OpPlusUconst)
	b = binary.AppendUvarint(b, 4*f.TableIndex)
	return append(b, dw.OpDerefSize, 4, dw.OpPlus)
}
