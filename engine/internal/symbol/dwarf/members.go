// SPDX-License-Identifier: Apache-2.0

package dwarf

import "github.com/unwindd/unwindd/internal/dw"

// Parts are the parts of a structure, a class or a union.
type Parts struct {
	// Members are base classes, data members and variant parts in the order of the file.
	Members []Member
	// Statics are the declarations of static data members.
	Statics []Entry
	// Types are the types that are declared inside, by name.
	Types []Entry
	// Arguments are the template's arguments: DW_TAG_template_type_parameter and
	// DW_TAG_template_value_parameter, including those in packs.
	Arguments []Entry
}

// MemberRole is the kind of a Member.
type MemberRole uint8

// The roles of members.
const (
	DataMember  MemberRole = iota
	BaseClass              // DW_TAG_inheritance
	VariantPart            // DW_TAG_variant_part with Variants
)

// Member is a data member, a base class or a variant part (DWARF 5, 5.7).
type Member struct {
	Entry
	Role MemberRole
	Name string // "" of one without
	// Bits is the offset in bits from the start of the type; valid where At is nil.
	Bits int64
	// At is the expression of the place of a virtual base class, which is evaluated with
	// the address of the object on the stack.
	At *Location
	// FieldBits is the size of a bit field in bits; 0: it is none.
	FieldBits    uint64
	IsArtificial bool

	// Type is the member's type; nil where it cannot be read: ValueType returns the error.
	Type *Type

	// Of a variant part: the member that selects the variant, nil where none does, and the
	// variants.
	Discriminant *Member
	Variants     []Variant
}

// Variant has the members of an object for some values of the discriminant (DWARF 5,
// 5.7.10).
type Variant struct {
	Ranges  []DiscriminantRange // none: it is the default
	Members []Member
}

// DiscriminantRange is the values from First to Last, both included.
type DiscriminantRange struct{ First, Last uint64 }

// maxMembers bounds the members of a type, including the members of variants.
const maxMembers = 1 << 16

// Parts reads the parts of a structure, a class or a union.
func (t *Type) Parts() (*Parts, error) {
	if t.IsZero() {
		return &Parts{}, nil
	}
	return t.parts.get(func() (*Parts, error) {
		p := &Parts{}
		budget := maxMembers
		err := p.read(t.Entry, &budget)
		t.b.file.addKept(sizeOf[Member](maxMembers - budget))
		return p, err
	})
}

// read appends the parts in an entry.
func (p *Parts) read(e Entry, budget *int) error {
	for c, err := range e.Children() {
		if err != nil {
			return err
		}
		if *budget--; *budget < 0 {
			return e.b.wrong(e.off, "the type has more than %d members", maxMembers)
		}
		switch c.Tag() {
		case dw.TagMember:
			isStatic, err := c.isStaticMember()
			if err != nil {
				return err
			}
			if isStatic {
				p.Statics = append(p.Statics, c)
				continue
			}
			if err := p.add(c, DataMember); err != nil {
				return err
			}
		case dw.TagInheritance:
			if err := p.add(c, BaseClass); err != nil {
				return err
			}
		case dw.TagVariable: // of DWARF 5: a static member
			p.Statics = append(p.Statics, c)
		case dw.TagTemplateTypeParameter, dw.TagTemplateValueParameter:
			p.Arguments = append(p.Arguments, c)
		case dw.TagGNUTemplateParameterPack:
			for a, err := range c.Children() {
				if err != nil {
					return err
				}
				if *budget--; *budget < 0 {
					break
				}
				p.Arguments = append(p.Arguments, a)
			}
		case dw.TagVariantPart:
			m, err := c.variantPart(budget)
			if err != nil {
				return err
			}
			p.Members = append(p.Members, m)
		default:
			if _, isType := kindOfTag[c.Tag()]; isType && c.Name() != "" {
				p.Types = append(p.Types, c)
			}
		}
	}
	return nil
}

func (p *Parts) add(c Entry, role MemberRole) error {
	m, err := c.member(role)
	if err == nil {
		p.Members = append(p.Members, m)
	}
	return err
}

// isStaticMember reports whether a DW_TAG_member is static: before DWARF 5 static members
// are external declarations.
func (e Entry) isStaticMember() (bool, error) {
	isExternal, err := e.hasFlag(dw.AttrExternal)
	if err != nil {
		return false, err
	}
	isDeclaration, err := e.hasFlag(dw.AttrDeclaration)
	return isExternal && isDeclaration, err
}

// member reads the place of a member (DWARF 5, 5.7.6).
func (e Entry) member(role MemberRole) (m Member, err error) {
	m = Member{Entry: e, Role: role, Name: e.Name()}
	m.Type, _ = e.ValueType() // the reader of the member gets the error
	if m.IsArtificial, err = e.hasFlag(dw.AttrArtificial); err != nil {
		return m, err
	}
	v, ok, err := e.own(dw.AttrDataMemberLocation)
	if err != nil {
		return m, err
	}
	if ok {
		m.place(&v)
	}
	err = m.readField()
	return m, err
}

// place sets the place from a DW_AT_data_member_location. DWARF 2 writes a constant as the
// operation that adds it.
func (m *Member) place(v *value) {
	if n, ok := v.constant(); ok {
		m.Bits = int64(n) * 8
		return
	}
	if !v.isBlock() {
		return
	}
	if c := newCursor(v.b, m.b.format.isBigEndian, 0, uint64(len(v.b))); c.uint(1) == dw.OpPlusUconst {
		if n := c.uleb(); !c.failed && !c.hasMore() {
			m.Bits = int64(n) * 8
			return
		}
	}
	m.At = &Location{Unit: Unit{m.b}, Expr: v.b}
}

// readField reads the place of a bit field: DW_AT_data_bit_offset, which counts from the
// start of the type, or DW_AT_bit_offset of DWARF 2 and 3, which counts from the most
// significant bit of the storage unit.
func (m *Member) readField() error {
	size, ok, err := m.Number(dw.AttrBitSize)
	if err != nil || !ok || size <= 0 {
		return err
	}
	m.FieldBits = uint64(size)
	if n, ok, err := m.Number(dw.AttrDataBitOffset); ok || err != nil {
		m.Bits = n
		return err
	}
	n, ok, err := m.Number(dw.AttrBitOffset)
	if !ok || err != nil {
		return err
	}
	if v, ok, err := m.own(dw.AttrBitOffset); ok && err == nil {
		switch v.form { // negative for a field that begins before its unit
		case dw.FormData1:
			n = int64(int8(v.n))
		case dw.FormData2:
			n = int64(int16(v.n))
		}
	}
	if m.b.format.isBigEndian {
		m.Bits += n
		return nil
	}
	unit, ok, err := m.Number(dw.AttrByteSize)
	if err != nil {
		return err
	}
	if !ok {
		bytes, _ := m.Size()
		unit = int64(bytes)
	}
	m.Bits += unit*8 - n - size
	return nil
}

// variantPart reads a DW_TAG_variant_part.
func (e Entry) variantPart(budget *int) (m Member, err error) {
	m = Member{Entry: e, Role: VariantPart}
	if v, ok, err := e.own(dw.AttrDiscr); ok && err == nil {
		target, err := e.b.follow(&v)
		if err != nil {
			return m, err
		}
		discriminant, err := target.member(DataMember)
		if err != nil {
			return m, err
		}
		m.Discriminant = &discriminant
	}
	for c, err := range e.Children() {
		if err != nil {
			return m, err
		}
		if c.Tag() != dw.TagVariant {
			continue
		}
		v := Variant{}
		if v.Ranges, err = c.discriminants(); err != nil {
			return m, err
		}
		var inside Parts
		if *budget--; *budget < 0 {
			return m, e.b.wrong(e.off, "the type has more than %d members", maxMembers)
		}
		if err := inside.read(c, budget); err != nil {
			return m, err
		}
		v.Members = inside.Members
		m.Variants = append(m.Variants, v)
	}
	return m, nil
}

// discriminants are the values of a variant: DW_AT_discr_value, or the list of
// DW_AT_discr_list (DWARF 5, 7.9).
func (e Entry) discriminants() (list []DiscriminantRange, err error) {
	v, ok, err := e.own(dw.AttrDiscrValue)
	if err != nil {
		return nil, err
	}
	if ok {
		n, isNumber := v.constant()
		if v.form == dw.FormData16 && len(v.b) == 16 { // of 16 bytes the low half suffices
			n, isNumber = uintAt(v.b[:8], e.b.format.isBigEndian), true
		}
		if isNumber {
			list = append(list, DiscriminantRange{n, n})
		}
		return list, nil
	}
	if v, ok, err = e.own(dw.AttrDiscrList); !ok || err != nil || !v.isBlock() {
		return nil, err
	}
	for c := newCursor(v.b, e.b.format.isBigEndian, 0, uint64(len(v.b))); c.hasMore(); {
		isRange := c.uint(1) == 1
		first := c.uleb()
		last := first
		if isRange {
			last = c.uleb()
		}
		if c.failed {
			return nil, e.b.wrong(e.off, "DW_AT_discr_list ends within an entry")
		}
		list = append(list, DiscriminantRange{first, last})
	}
	return list, nil
}

// Holds reports whether the variant matches a discriminant of a number of bits.
func (v *Variant) Holds(discriminant uint64, bits uint64) bool {
	mask := ^uint64(0)
	if bits < 64 {
		mask = 1<<bits - 1
	}
	for _, r := range v.Ranges {
		if r.First&mask <= discriminant&mask && discriminant&mask <= r.Last&mask {
			return true
		}
	}
	return false
}
