// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// TypeKind is the kind of type that an entry describes (DWARF 5, chapter 5).
type TypeKind uint8

// The kinds of types.
const (
	KindUnknown         TypeKind = iota // an entry that is none of the others
	KindVoid                            // no entry
	KindBase                            // DW_TAG_base_type
	KindPointer                         // DW_TAG_pointer_type
	KindReference                       // DW_TAG_reference_type
	KindRvalueReference                 // DW_TAG_rvalue_reference_type
	KindMemberPointer                   // DW_TAG_ptr_to_member_type
	KindArray                           // DW_TAG_array_type
	KindStructure                       // DW_TAG_structure_type, DW_TAG_class_type, DW_TAG_interface_type
	KindUnion                           // DW_TAG_union_type
	KindEnumeration                     // DW_TAG_enumeration_type
	KindSubroutine                      // DW_TAG_subroutine_type
	KindNamed                           // another name of a type: DW_TAG_typedef, DW_TAG_template_alias
	KindQualified                       // DW_TAG_const_type and its kin
	KindString                          // DW_TAG_string_type
	KindUnspecified                     // DW_TAG_unspecified_type, such as the type of nullptr
	KindSubrange                        // DW_TAG_subrange_type, a range of another type
)

var kindOfTag = map[dw.Tag]TypeKind{
	dw.TagBaseType: KindBase, dw.TagPointerType: KindPointer, dw.TagReferenceType: KindReference, dw.TagRvalueReferenceType: KindRvalueReference,
	dw.TagPtrToMemberType: KindMemberPointer, dw.TagArrayType: KindArray, dw.TagCoarrayType: KindArray,
	dw.TagStructureType: KindStructure, dw.TagClassType: KindStructure, dw.TagInterfaceType: KindStructure, dw.TagUnionType: KindUnion,
	dw.TagEnumerationType: KindEnumeration, dw.TagSubroutineType: KindSubroutine, dw.TagTypedef: KindNamed, dw.TagTemplateAlias: KindNamed,
	dw.TagConstType: KindQualified, dw.TagVolatileType: KindQualified, dw.TagRestrictType: KindQualified, dw.TagAtomicType: KindQualified,
	dw.TagImmutableType: KindQualified, dw.TagPackedType: KindQualified, dw.TagSharedType: KindQualified, dw.TagDynamicType: KindQualified,
	dw.TagLLVMPtrauthType: KindQualified, dw.TagStringType: KindString, dw.TagUnspecifiedType: KindUnspecified,
	dw.TagSubrangeType: KindSubrange, dw.TagGenericSubrange: KindSubrange,
}

// Type is a type as its entry describes it. Its parts are read when needed. Types of one
// entry are the same pointer, as long as their unit keeps them. Their methods read the
// file: see Entry.
type Type struct {
	// Entry describes the type; the zero Entry is void. For a declaration completed by a
	// type unit it is the entry there.
	Entry
	Kind TypeKind
	// Name is DW_AT_name; "" of a type without one.
	Name string
	// Size is in bytes; IsSized is false where it is unknown.
	Size    uint64
	IsSized bool
	// IsDeclaration is set where the entry does not describe the parts of the type: see
	// Complete.
	IsDeclaration bool
	// Base is set of a base type.
	Base *locexpr.BaseType
	// Of an array: IsVector is set for a vector of the hardware (DW_AT_GNU_vector), Stride
	// is DW_AT_byte_stride, in bytes (0: there is none), and IsDescribed is set where the
	// object is a descriptor of the array: it has DW_AT_data_location, DW_AT_allocated or
	// DW_AT_associated (DWARF 5, 5.18).
	IsVector, IsDescribed bool
	Stride                uint64
	// Space is the address space that a pointer or a reference points into, by
	// DW_AT_LLVM_address_space or DW_AT_address_class (heterogeneous extension, A.5.3).
	Space locexpr.AddressSpace

	element    lazy[*Type]
	complete   lazy[*Type]
	parts      lazy[*Parts]
	dimensions lazy[[]Dimension]
	values     lazy[[]Enumerator]
	spelled    lazy[string]
	remembered lazy[any]
}

var void = &Type{Kind: KindVoid, Name: "void"}

// typeBytes is about the size of a type, with the results remembered for it.
const typeBytes = 512

// maxTypesKept bounds the types that a unit keeps; further ones are read again.
const maxTypesKept = 1 << 14

// typeTable has the types of a unit that were read so far.
type typeTable struct {
	mu   sync.Mutex
	list map[uint64]*Type // by offset
}

// AsType reads the entry as a type; the zero Entry is void.
func (e Entry) AsType() (*Type, error) {
	if e.IsZero() {
		return void, nil
	}
	table := &e.b.types
	table.mu.Lock()
	t := table.list[e.off]
	table.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := e.readType()
	if err != nil {
		return nil, err
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if known := table.list[e.off]; known != nil {
		return known, nil
	}
	if table.list == nil || len(table.list) >= maxTypesKept {
		e.b.file.addKept(-len(table.list) * typeBytes)
		table.list = map[uint64]*Type{}
	}
	e.b.file.addKept(typeBytes)
	table.list[e.off] = t
	return t, nil
}

// ValueType is the type of a variable, a member or another type by DW_AT_type.
func (e Entry) ValueType() (*Type, error) {
	t, err := e.Type()
	if err != nil {
		return nil, err
	}
	return t.AsType()
}

func (e Entry) readType() (*Type, error) {
	if unit, ok := e.inTypeUnit(); ok {
		return unit.AsType()
	}
	isDeclaration, err := e.hasFlag(dw.AttrDeclaration)
	if err != nil {
		return nil, err
	}
	t := &Type{Entry: e, Kind: kindOfTag[e.Tag()], Name: e.Name(), IsDeclaration: isDeclaration}
	switch t.Kind {
	case KindBase:
		if size, ok := e.size(0); ok && size == 0 {
			break // such as Rust's (), which has no values to be told apart
		}
		if t.Base, err = e.BaseType(); err != nil {
			return nil, err
		}
	case KindPointer, KindReference, KindRvalueReference:
		for _, attr := range []dw.Attr{dw.AttrLLVMAddressSpace, dw.AttrAddressClass} {
			n, ok, err := e.Number(attr)
			if err != nil {
				return nil, err
			}
			if ok && n > 0 {
				t.Space = locexpr.AddressSpace(n)
				break
			}
		}
	}
	if t.Kind == KindArray || t.Kind == KindString {
		t.readArray()
	}
	t.Size, t.IsSized = e.size(0)
	return t, nil
}

// readArray reads the optional attributes of an array, without its dimensions.
func (t *Type) readArray() {
	if is, err := t.hasFlag(dw.AttrGNUVector); err == nil {
		t.IsVector = is
	}
	if n, ok, err := t.Number(dw.AttrByteStride); err == nil && ok && n > 0 {
		t.Stride = uint64(n)
	}
	t.IsDescribed = t.Has(dw.AttrDataLocation) || t.Has(dw.AttrAllocated) || t.Has(dw.AttrAssociated)
}

// inTypeUnit is the type in a type unit that an entry refers to (DW_AT_signature). Where it
// is missing only the entry is left, which has hardly any attributes.
func (e Entry) inTypeUnit() (Entry, bool) {
	v, ok, err := e.own(dw.AttrSignature)
	if !ok || err != nil {
		return Entry{}, false
	}
	t, err := e.b.follow(&v)
	return t, err == nil && !t.Is(e) && !t.Has(dw.AttrSignature)
}

// Complete is the definition of a declared type, which may be in another unit. All units
// are searched for it, once. For a type without a definition, and for a complete one, it is
// the type itself.
func (t *Type) Complete() *Type {
	if !t.IsDeclaration {
		return t
	}
	complete, err := t.complete.get(func() (*Type, error) {
		found := t.b.file.reader.definitionOf(t.Entry)
		if found.IsZero() {
			return t, nil
		}
		return found.AsType()
	})
	if err != nil {
		return t
	}
	return complete
}

// Remember returns the result of compute, which is called once and whose result is kept as
// long as the type is. size is about the size of the result, in bytes.
func (t *Type) Remember(compute func() (result any, size int)) any {
	if t.IsZero() {
		return nil
	}
	kept, _ := t.remembered.get(func() (any, error) {
		result, size := compute()
		t.b.file.addKept(size)
		return result, nil
	})
	return kept
}

// Element is the target of a pointer, the element type of an array, the type behind a name
// or qualifier, the result type of a subroutine, or the integer type of an enumeration.
// Where there is none it is void.
func (t *Type) Element() (*Type, error) {
	if t.IsZero() {
		return void, nil
	}
	return t.element.get(t.ValueType)
}

// maxSeenThrough bounds the names and qualifiers that Plain removes.
const maxSeenThrough = 64

// Plain is the type without its names and qualifiers.
func (t *Type) Plain() (*Type, error) {
	for range maxSeenThrough {
		if t.Kind != KindNamed && t.Kind != KindQualified && (t.Kind != KindSubrange || t.IsSized && t.Base != nil) {
			return t, nil
		}
		next, err := t.Element()
		if err != nil {
			return t, err
		}
		t = next
	}
	return t, t.b.wrong(t.off, "the type is a name of names more than %d deep", maxSeenThrough)
}

// Enumerator is a value of an enumeration with its name (DWARF 5, 5.7).
type Enumerator struct {
	Name  string
	Value uint64 // in two's complement where it is negative
}

// maxEnumerators bounds the enumerators that are read.
const maxEnumerators = 1 << 16

// Enumerators are the values of an enumeration, in the order of the file.
func (t *Type) Enumerators() ([]Enumerator, error) {
	return t.values.get(func() (list []Enumerator, err error) {
		for c, err := range t.Children() {
			if err != nil {
				return list, err
			}
			if c.Tag() != dw.TagEnumerator {
				continue
			}
			n, ok, err := c.Number(dw.AttrConstValue)
			if err != nil {
				return list, err
			}
			if ok && len(list) < maxEnumerators {
				list = append(list, Enumerator{c.Name(), uint64(n)})
			}
		}
		if !t.IsZero() {
			t.b.file.addKept(sizeOf[Enumerator](len(list)))
		}
		return list, nil
	})
}

// Bound is a number of a type: a constant, or a value in the frame or the object that has
// the type (DWARF 5, 2.19).
type Bound struct {
	IsKnown  bool // Value is the number
	Value    int64
	Location *Location // an expression or a list that yields it; nil: none
	Variable Entry     // whose value it is; zero: none
}

// HasValue reports whether the bound is described.
func (b *Bound) HasValue() bool { return b.IsKnown || b.Location != nil || !b.Variable.IsZero() }

// bound reads an attribute as a Bound.
func (e Entry) bound(attr dw.Attr) (b Bound, err error) {
	v, owner, ok, err := e.find(attr)
	if !ok || err != nil {
		return b, err
	}
	if n, ok := v.constant(); ok {
		b.Value, b.IsKnown = signedOf(&v, n), true
		return b, nil
	}
	if isReference(v.form) {
		b.Variable, err = owner.b.follow(&v)
		return b, err
	}
	l, ok, err := e.Location(attr)
	if ok && err == nil {
		b.Location = &l
	}
	return b, err
}

// signedOf reads a constant of 4 bytes with all bits set as -1: gcc writes the upper bound
// of an array without elements so.
func signedOf(v *value, n uint64) int64 {
	if v.form == dw.FormData4 && n == 1<<32-1 {
		return -1
	}
	return int64(n)
}

func isReference(f dw.Form) bool {
	switch f {
	case dw.FormRef1, dw.FormRef2, dw.FormRef4, dw.FormRef8, dw.FormRefUdata, dw.FormRefAddr, dw.FormRefSig8, dw.FormRefSup4, dw.FormRefSup8, dw.FormGNURefAlt:
		return true
	}
	return false
}

// Dimension is a dimension of an array (DWARF 5, 5.5 and 5.13).
type Dimension struct {
	Lower  Bound // without a value it is the language's default
	Upper  Bound
	Count  Bound // number of elements; without a value it follows from the bounds
	Stride Bound // of DW_AT_byte_stride, in bytes
}

// maxDimensions bounds the dimensions of an array.
const maxDimensions = 64

// Dimensions are the dimensions of an array, the outermost first: elements next to one
// another in memory differ in the index of the last one.
func (t *Type) Dimensions() ([]Dimension, error) {
	return t.dimensions.get(func() (list []Dimension, err error) {
		for c, err := range t.Children() {
			if err != nil {
				return nil, err
			}
			if c.Tag() != dw.TagSubrangeType && c.Tag() != dw.TagEnumerationType && c.Tag() != dw.TagGenericSubrange {
				continue
			}
			if len(list) == maxDimensions {
				return nil, t.b.wrong(t.off, "the array has more than %d dimensions", maxDimensions)
			}
			var d Dimension
			for _, x := range []struct {
				target *Bound
				attr   dw.Attr
			}{{&d.Lower, dw.AttrLowerBound}, {&d.Upper, dw.AttrUpperBound}, {&d.Count, dw.AttrCount}, {&d.Stride, dw.AttrByteStride}} {
				if *x.target, err = c.bound(x.attr); err != nil {
					return nil, err
				}
			}
			if !d.Lower.HasValue() {
				d.Lower = Bound{IsKnown: true, Value: defaultLowerBound(t.b.languageOf())}
			}
			list = append(list, d)
		}
		if len(list) > 1 && t.isColumnMajor() {
			slices.Reverse(list)
		}
		return list, nil
	})
}

// isColumnMajor reports whether elements next to one another in memory differ in the index
// of the first dimension: by DW_AT_ordering, or because the array is Fortran's (DWARF 5,
// 5.5).
func (t *Type) isColumnMajor() bool {
	const columnMajor = 1 // DW_ORD_col_major
	if n, ok, err := t.Number(dw.AttrOrdering); ok && err == nil {
		return n == columnMajor
	}
	return isFortran(t.b.languageOf())
}

func isFortran(language uint64) bool {
	switch language {
	case dw.LangFortran77, dw.LangFortran90, dw.LangFortran95, dw.LangFortran03, dw.LangFortran08, dw.LangFortran18:
		return true
	}
	return false
}

// defaultLowerBound is the default lower bound of a language (DWARF 5, table 7.17).
func defaultLowerBound(language uint64) int64 {
	switch language {
	case dw.LangCobol74, dw.LangCobol85, dw.LangFortran77, dw.LangFortran90, dw.LangFortran95, dw.LangFortran03, dw.LangFortran08, dw.LangFortran18,
		dw.LangPascal83, dw.LangModula2, dw.LangModula3, dw.LangAda83, dw.LangAda95, dw.LangAda2005, dw.LangAda2012, dw.LangPLI, dw.LangJulia:
		return 1
	}
	return 0
}

// Bound is a property of the type that may depend on the object: DW_AT_data_location,
// DW_AT_allocated, DW_AT_associated, DW_AT_byte_size, DW_AT_string_length.
func (t *Type) Bound(attr dw.Attr) (Bound, error) {
	if t.IsZero() {
		return Bound{}, nil
	}
	return t.bound(attr)
}
