// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// object reads a structure, a class or a union.
func (r *Reader) object(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location, depth int) {
	if t = t.Complete(); t.IsDeclaration {
		fail(v, errors.New("the type is declared only: nothing says what it consists of"))
		return
	}
	v.Shape = trace.ShapeStructure
	parts, err := t.Parts()
	if err != nil {
		fail(v, err)
		return
	}
	if len(parts.Members) > 0 && depth+1 >= r.limits.Depth {
		v.IsDeep = true
		return
	}
	r.members(ctx, v, parts.Members, l, depth)
	setStatus(v)
}

// members reads members, and in variant parts the members of the current variant.
func (r *Reader) members(ctx context.Context, v *trace.Value, list []dwarf.Member, l locexpr.Location, depth int) {
	if v.Children == nil && len(list) > 0 {
		v.Children = make([]trace.Value, 0, len(list))
	}
	for i := range list {
		if r.left < 0 {
			v.More += uint64(len(list) - i)
			return
		}
		m := &list[i]
		if m.Role == dwarf.VariantPart {
			r.variant(ctx, v, m, l, depth)
			continue
		}
		v.Children = append(v.Children, trace.Value{})
		r.member(ctx, &v.Children[len(v.Children)-1], m, l, depth)
	}
}

// member reads a member of an object into child.
func (r *Reader) member(ctx context.Context, child *trace.Value, m *dwarf.Member, l locexpr.Location, depth int) {
	t := m.Type
	if t == nil {
		_, err := m.ValueType()
		child.Name = m.Name
		fail(child, fmt.Errorf("type of the member: %w", err))
		return
	}
	place, err := r.memberLocation(ctx, m, l)
	if err != nil {
		child.Name, child.Type = m.Name, t.String()
		fail(child, err)
		return
	}
	switch {
	case m.FieldBits > 0 && m.At == nil && r.isReversed(t):
		*child = r.reversedField(ctx, m, t, l)
	case m.FieldBits > 0:
		*child = r.field(ctx, m, t, place)
	case m.Role == dwarf.BaseClass: // its members are the object's own
		r.read(ctx, child, "", t, place, depth)
		child.Name, child.Role = child.Type, trace.RoleBase
	case m.Name == "": // an unnamed structure's or union's members likewise
		r.read(ctx, child, "", t, place, depth)
	default:
		r.read(ctx, child, m.Name, t, place, depth+1)
	}
}

// memberLocation returns where a member of an object is (DWARF 5, 5.7.6).
func (r *Reader) memberLocation(ctx context.Context, m *dwarf.Member, object locexpr.Location) (locexpr.Location, error) {
	if m.At == nil {
		return object.Offset(m.Bits)
	}
	return r.frame.Evaluate(ctx, m.At, object, locexpr.LocationEntry(object))
}

// field reads a bit field.
func (r *Reader) field(ctx context.Context, m *dwarf.Member, t *dwarf.Type, l locexpr.Location) trace.Value {
	v := trace.Value{Name: m.Name, Type: t.String(), Status: trace.ValueOK}
	r.left--
	if m.FieldBits > 64 {
		fail(&v, errNoSize)
		return v
	}
	plain, err := t.Plain()
	if err != nil {
		fail(&v, err)
		return v
	}
	b := make([]byte, 8)
	if err := l.Read(ctx, r.context, b[:(m.FieldBits+7)/8], m.FieldBits); err != nil {
		fail(&v, err)
		return v
	}
	n := integer(b[:(m.FieldBits+7)/8], r.context.ByteOrder())
	if pad := m.FieldBits % 8; r.context.ByteOrder() == locexpr.BigEndian && pad != 0 {
		n >>= 8 - pad // a stream of bits ends in zeros
	}
	r.fieldText(&v, m, plain, n)
	return v
}

// isReversed reports whether a type has the byte order opposite to the machine's.
func (r *Reader) isReversed(t *dwarf.Type) bool {
	base := named(t)
	if base == nil || base.Endianity == locexpr.EndDefault {
		return false
	}
	return (base.Endianity == locexpr.EndBig) != (r.context.ByteOrder() == locexpr.BigEndian)
}

// reversedField reads a bit field of an object at l whose bits are counted in the byte order
// opposite to the machine's (DW_AT_endianity).
func (r *Reader) reversedField(ctx context.Context, m *dwarf.Member, t *dwarf.Type, l locexpr.Location) trace.Value {
	v := trace.Value{Name: m.Name, Type: t.String(), Status: trace.ValueOK}
	r.left--
	plain, err := t.Plain()
	if err == nil && (m.FieldBits > 64 || m.Bits < 0) {
		err = errNoSize
	}
	if err == nil {
		l, err = l.Offset(m.Bits &^ 7)
	}
	var b []byte
	if err == nil {
		b, err = r.bytes(ctx, l, (uint64(m.Bits&7)+m.FieldBits+7)/8)
	}
	if err != nil {
		fail(&v, err)
		return v
	}
	r.fieldText(&v, m, plain, bitsOf(b, uint64(m.Bits&7), m.FieldBits, r.context.ByteOrder() == locexpr.LittleEndian))
	return v
}

// bitsOf returns the number in count bits, at most 64, from a bit of some bytes on: counted
// from the most significant bit of each byte where isBig is true, else from the least.
func bitsOf(b []byte, offset, count uint64, isBig bool) (n uint64) {
	for i := range count {
		first := offset + i
		if isBig {
			n = n<<1 | uint64(b[first/8]>>(7-first%8)&1)
		} else {
			n |= uint64(b[first/8]>>(first%8)&1) << i
		}
	}
	return n
}

// fieldText sets the text of a bit field that has a number.
func (r *Reader) fieldText(v *trace.Value, m *dwarf.Member, plain *dwarf.Type, n uint64) {
	if plain.Kind == dwarf.KindEnumeration {
		r.fieldOfEnumeration(v, plain, n, m.FieldBits)
		return
	}
	if plain.Base == nil {
		fail(v, errNoSize)
		return
	}
	if IsSigned(plain.Base) {
		n = SignExtended(n, m.FieldBits)
	}
	setText(v, r.baseText(plain.Base, locexpr.TypedValue(plain.Base, n)))
}

func (r *Reader) fieldOfEnumeration(v *trace.Value, t *dwarf.Type, n, bits uint64) {
	list, err := t.Enumerators()
	if err != nil || !t.IsSized || t.Size == 0 || t.Size > 8 {
		fail(v, errors.Join(err, errNoSize))
		return
	}
	n, signed := extendedAsEnum(t, n, bits)
	setText(v, enumText(t, list, n, signed))
}

// variant reads the members of the current variant, by the discriminant (DWARF 5, 5.7.10).
func (r *Reader) variant(ctx context.Context, v *trace.Value, m *dwarf.Member, l locexpr.Location, depth int) {
	chosen, err := r.chosenVariant(ctx, m, l)
	if err != nil {
		child := trace.Value{Name: "<variant>", Role: trace.RoleVariant}
		fail(&child, err)
		v.Children = append(v.Children, child)
		return
	}
	if chosen == nil {
		return
	}
	count := len(v.Children)
	r.members(ctx, v, chosen.Members, l, depth)
	for i := count; i < len(v.Children); i++ {
		v.Children[i].Role = trace.RoleVariant
	}
}

// chosenVariant returns the current variant; nil where there is none.
func (r *Reader) chosenVariant(ctx context.Context, m *dwarf.Member, l locexpr.Location) (*dwarf.Variant, error) {
	if m.Discriminant == nil {
		if len(m.Variants) == 1 {
			return &m.Variants[0], nil
		}
		return nil, errors.New("nothing says which variant is there")
	}
	t, err := m.Discriminant.ValueType()
	if err != nil {
		return nil, err
	}
	place, err := r.memberLocation(ctx, m.Discriminant, l)
	if err != nil {
		return nil, err
	}
	size := min(t.Size, 8)
	if !t.IsSized || size == 0 {
		return nil, errNoSize
	}
	b, err := r.bytes(ctx, place, size)
	if err != nil {
		return nil, err
	}
	n := integer(b, r.context.ByteOrder())
	var other *dwarf.Variant
	for i := range m.Variants {
		x := &m.Variants[i]
		if len(x.Ranges) == 0 {
			other = x
		} else if x.Holds(n, size*8) {
			return x, nil
		}
	}
	return other, nil
}
