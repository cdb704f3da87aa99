// SPDX-License-Identifier: Apache-2.0

package codeview

// This file decodes the records of types.

// Modifier is a type with qualifiers (LF_MODIFIER).
type Modifier struct {
	Target     TypeIndex
	Qualifiers Qualifiers
}

// Qualifiers are the qualifiers of a type or of a pointer.
type Qualifiers uint8

// The qualifiers.
const (
	Const Qualifiers = 1 << iota
	Volatile
	Unaligned
	Restrict
)

// PointerMode tells pointers from references.
type PointerMode uint8

// The modes of pointers.
const (
	ModePointer PointerMode = iota
	ModeReference
	ModeDataMember
	ModeMemberFunction
	ModeRvalueReference
)

// Pointer is a pointer or a reference (LF_POINTER).
type Pointer struct {
	Target     TypeIndex
	Mode       PointerMode
	Size       uint8 // bytes; 0: unknown
	Qualifiers Qualifiers
	Class      TypeIndex // of pointers to members
	// Inheritance is the representation of a pointer to a member: a CV_pmtype.
	Inheritance uint16
}

// Array is an array (LF_ARRAY); several dimensions are arrays of arrays.
type Array struct {
	Element, Index TypeIndex
	Size           uint64 // of all elements, in bytes
	Name           string
}

// BitField is the type of a bit field (LF_BITFIELD).
type BitField struct {
	Base             TypeIndex
	Length, Position uint8 // in bits, from the least significant one
}

// Procedure is the type of a function (LF_PROCEDURE and LF_MFUNCTION).
type Procedure struct {
	Return     TypeIndex
	Class      TypeIndex // of a method
	This       TypeIndex // of a method: a pointer; 0: it is static
	Convention uint8
	Arguments  TypeIndex
}

// Properties of classes, structures, unions and enumerations (CV_prop_t).
const (
	PropertyNested    = 1 << 3
	PropertyForward   = 1 << 7
	PropertyScoped    = 1 << 8
	PropertyHasUnique = 1 << 9
)

// UDT is a class, a structure, a union, an interface or an enumeration.
type UDT struct {
	Kind       uint16 // LFClass, LFStructure, LFUnion, LFEnum, LFInterface
	Count      uint16 // of fields
	Properties uint32
	Fields     TypeIndex
	Derived    TypeIndex
	VShape     TypeIndex
	Underlying TypeIndex // of an enumeration
	Size       uint64    // in bytes; an enumeration's is of its underlying type
	Name       string    // with its scopes
	UniqueName string    // "": it has none
}

// IsForward reports whether the record is a declaration.
func (u *UDT) IsForward() bool { return u.Properties&PropertyForward != 0 }

// qualifiersAt are the qualifiers in bits of an attribute.
func qualifiersAt(attributes uint32, constant, volatile, unaligned, restrict int) (q Qualifiers) {
	for _, x := range []struct {
		bit int
		is  Qualifiers
	}{{constant, Const}, {volatile, Volatile}, {unaligned, Unaligned}, {restrict, Restrict}} {
		if attributes>>x.bit&1 != 0 {
			q |= x.is
		}
	}
	return q
}

// DecodeModifier decodes a record of the kind LFModifier.
func DecodeModifier(data []byte) (m Modifier, err error) {
	c := cursor{rest: data}
	m.Target = c.index()
	m.Qualifiers = qualifiersAt(uint32(c.u16()), 0, 1, 2, 31)
	return m, c.err()
}

func (c *cursor) err() error {
	if c.failed {
		return errCut
	}
	return nil
}

// sizesOfKinds are the sizes of pointers by CV_ptrtype: near, far and huge ones of 16 bits, near
// and far ones of 32, and ones of 64.
var sizesOfKinds = [32]uint8{0: 2, 1: 4, 2: 4, 0x0a: 4, 0x0b: 6, 0x0c: 8}

// DecodePointer decodes a record of the kind LFPointer.
func DecodePointer(data []byte) (p Pointer, err error) {
	c := cursor{rest: data}
	p.Target = c.index()
	attributes := c.u32()
	p.Mode, p.Size = PointerMode(attributes>>5&7), uint8(attributes>>13&0x3f)
	p.Qualifiers = qualifiersAt(attributes, 10, 9, 11, 12)
	if p.Mode == ModeDataMember || p.Mode == ModeMemberFunction {
		p.Class, p.Inheritance = c.index(), c.u16()
		return p, c.err()
	}
	// LLVM writes the size of the target into references to arguments that are passed in memory.
	if size := sizesOfKinds[attributes&0x1f]; size > 0 {
		p.Size = size
	}
	return p, c.err()
}

// DecodeArray decodes a record of the kind LFArray.
func DecodeArray(data []byte) (a Array, err error) {
	c := cursor{rest: data}
	a.Element, a.Index, a.Size, a.Name = c.index(), c.index(), c.size(), c.text()
	return a, c.err()
}

// DecodeBitField decodes a record of the kind LFBitField.
func DecodeBitField(data []byte) (b BitField, err error) {
	c := cursor{rest: data}
	b.Base, b.Length, b.Position = c.index(), c.u8(), c.u8()
	return b, c.err()
}

// DecodeProcedure decodes a record of the kind LFProcedure or LFMemberFunc.
func DecodeProcedure(kind uint16, data []byte) (p Procedure, err error) {
	c := cursor{rest: data}
	p.Return = c.index()
	if kind == LFMemberFunc {
		p.Class, p.This = c.index(), c.index()
	}
	p.Convention, _, _, p.Arguments = c.u8(), c.u8(), c.u16(), c.index()
	return p, c.err()
}

// maxArguments bounds the arguments of a function that are read.
const maxArguments = 1 << 10

// DecodeArguments decodes a record of the kind LFArgList, or LFSubstrList.
func DecodeArguments(data []byte) (list []TypeIndex, err error) {
	c := cursor{rest: data}
	n := c.u32()
	if uint64(n) > uint64(len(c.rest))/4 {
		return nil, errCut
	}
	for range min(n, maxArguments) {
		list = append(list, c.index())
	}
	return list, nil
}

// plainKinds are the older kinds of records that have the same parts.
var plainKinds = map[uint16]uint16{
	LFClass: LFClass, LFStructure: LFStructure, LFInterface: LFInterface, LFUnion: LFUnion, LFEnum: LFEnum,
	LFClass2: LFClass, LFStructure2: LFStructure, LFInterface2: LFInterface, LFUnion2: LFUnion,
}

// IsUDT reports whether a kind is of a class, structure, union, interface or enumeration.
func IsUDT(kind uint16) bool { return plainKinds[kind] != 0 }

// DecodeUDT decodes a record of a kind of which IsUDT.
func DecodeUDT(kind uint16, data []byte) (u UDT, err error) {
	c := cursor{rest: data}
	if u.Kind = plainKinds[kind]; u.Kind == 0 {
		return u, errCut
	}
	isWide := kind != u.Kind // Visual Studio 2019's records
	if !isWide {
		u.Count = c.u16()
		u.Properties = uint32(c.u16())
	} else {
		u.Properties = c.u32()
	}
	switch u.Kind {
	case LFEnum:
		u.Underlying, u.Fields = c.index(), c.index()
	case LFUnion:
		u.Fields = c.index()
	default:
		u.Fields, u.Derived, u.VShape = c.index(), c.index(), c.index()
	}
	if isWide {
		u.Count = uint16(c.size()) //nolint:gosec // informative
	}
	if u.Kind != LFEnum {
		u.Size = c.size()
	}
	u.Name = c.text()
	if u.Properties&PropertyHasUnique != 0 && len(c.rest) > 0 {
		u.UniqueName = c.text()
	}
	return u, c.err()
}

// Field is a part of a class, a structure, a union or an enumeration.
type Field struct {
	Kind   uint16 // LFMember, LFStaticMember, LFEnumerate, LFBaseClass, ...
	Access uint16 // CV_fldattr_t
	Type   TypeIndex
	Name   string
	Offset uint64 // of a member or a base, in bytes
	Value  Number // of an enumerator
	// Of a virtual base: where the pointer to the table of virtual bases lies in the class, and
	// the index in the table.
	VirtualPointer TypeIndex
	PointerOffset  uint64
	TableIndex     uint64
}

// fieldReaders read the parts of fields behind the kind.
var fieldReaders = map[uint16]func(c *cursor, f *Field){
	LFBaseClass:     readBase,
	LFBaseInterface: readBase,
	LFVirtualBase:   readVirtualBase,
	LFIndirectBase:  readVirtualBase,
	LFIndex:         readPadded,
	LFVTablePointer: readPadded,
	LFVTableOffset:  func(c *cursor, f *Field) { readPadded(c, f); f.Offset = uint64(c.u32()) },
	LFEnumerate:     func(c *cursor, f *Field) { f.Access, f.Value, f.Name = c.u16(), c.number(), c.text() },
	LFMember: func(c *cursor, f *Field) {
		f.Access, f.Type, f.Offset, f.Name = c.u16(), c.index(), c.size(), c.text()
	},
	LFStaticMember: readNamed,
	LFMethod:       readNamed, // Access is the number of overloads
	LFNestedType:   readNamed,
	LFNestedTypeEx: readNamed,
	LFOneMethod:    readMethod,
}

func readBase(c *cursor, f *Field) { f.Access, f.Type, f.Offset = c.u16(), c.index(), c.size() }

func readVirtualBase(c *cursor, f *Field) {
	f.Access, f.Type, f.VirtualPointer, f.PointerOffset, f.TableIndex = c.u16(), c.index(), c.index(), c.size(), c.size()
}

func readPadded(c *cursor, f *Field) { f.Access, f.Type = c.u16(), c.index() }

func readNamed(c *cursor, f *Field) { f.Access, f.Type, f.Name = c.u16(), c.index(), c.text() }

func readMethod(c *cursor, f *Field) {
	f.Access, f.Type = c.u16(), c.index()
	if kind := f.Access >> 2 & 7; kind == 4 || kind == 6 { // it introduces a virtual method
		f.Offset = uint64(c.u32())
	}
	f.Name = c.text()
}

const (
	// maxLists bounds the lists that go on in one another: each is of about 64 KiB.
	maxLists = 1 << 8
	// maxFields bounds the fields of a type.
	maxFields = 1 << 16
)

// EachField calls yield with the fields of a list, until it returns false.
func (t *Types) EachField(list TypeIndex, yield func(*Field) bool) error {
	fields := 0
	for lists := 0; list != 0; lists++ {
		if lists == maxLists {
			return t.errorf(t.start, "the list of fields %#x goes on in more than %d lists", list, maxLists)
		}
		kind, data, err := t.Record(list)
		if err != nil {
			return err
		}
		if kind != LFFieldList {
			return t.errorf(t.start, "record %#x of the kind %#x, expected a list of fields", list, kind)
		}
		current := list
		list = 0
		for c := (cursor{rest: data}); len(c.rest) > 0; {
			if c.rest[0] >= 0xf0 { // padding
				c.take(min(max(int(c.rest[0]&0xf), 1), len(c.rest)))
				continue
			}
			f := Field{Kind: c.u16()}
			read := fieldReaders[f.Kind]
			if read == nil {
				return t.errorf(t.start, "list of fields %#x: a field of the kind %#x, which is unknown", current, f.Kind)
			}
			if read(&c, &f); c.failed {
				return t.errorf(t.start, "list of fields %#x: %w", current, errCut)
			}
			if f.Kind == LFIndex {
				list = f.Type
				continue
			}
			if fields++; fields > maxFields {
				return t.errorf(t.start, "list of fields %#x: more than %d fields", current, maxFields)
			}
			if !yield(&f) {
				return nil
			}
		}
	}
	return nil
}
