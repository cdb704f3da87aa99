// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// This file finds members of types and reads the numbers in them.

// member returns a member of the object at a place: its own, or that of a base class or of a
// member without a name.
func member(x *bound, name string) (*bound, error) {
	if x.class != classPlace || x.t == nil {
		return nil, notBound("%s of what is no object", name)
	}
	m, bits, err := findMember(x.t, name, 0)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, notBound("%s has no member %s", x.t, name)
	}
	return part(x, m, bits)
}

// part returns a member at an offset.
func part(x *bound, m *dwarf.Member, bits int64) (*bound, error) {
	t, err := m.ValueType()
	if err != nil {
		return nil, err
	}
	y := &bound{class: classPlace, t: t, eval: moved(x, bits)}
	if m.FieldBits > 0 {
		y.field = m
	}
	return y, nil
}

// moved returns a place at a number of bits after another.
func moved(x *bound, bits int64) func(context.Context, *run) (operand, error) {
	if bits == 0 {
		return x.eval
	}
	return func(ctx context.Context, r *run) (operand, error) {
		o, err := x.eval(ctx, r)
		if err == nil {
			o.l, err = o.l.Offset(bits)
		}
		return o, err
	}
}

// maxBases bounds the nested classes in which a member is looked for.
const maxBases = 24

// partsOf returns the parts of a type without its names and qualifiers.
func partsOf(t *dwarf.Type) (*dwarf.Parts, error) {
	plain, err := t.Plain()
	if err != nil {
		return nil, err
	}
	return plain.Parts()
}

// findMember finds a member by its name, and its offset in bits; nil: there is none. Members of
// virtual bases are left out: only the object has their places.
func findMember(t *dwarf.Type, name string, depth int) (*dwarf.Member, int64, error) {
	plain, err := t.Plain()
	if err != nil || depth > maxBases || plain.Kind != dwarf.KindStructure && plain.Kind != dwarf.KindUnion {
		return nil, 0, err
	}
	parts, err := plain.Parts()
	if err != nil {
		return nil, 0, err
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.DataMember && m.Name == name && m.At == nil {
			return m, m.Bits, nil
		}
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.VariantPart { // the variant is a member with a name of its own
			for j := range m.Variants {
				for k := range m.Variants[j].Members {
					if m := &m.Variants[j].Members[k]; m.Name == name && m.At == nil {
						return m, m.Bits, nil
					}
				}
			}
			continue
		}
		if m.At != nil || m.Role == dwarf.DataMember && m.Name != "" {
			continue
		}
		member, err := m.ValueType()
		if err != nil {
			return nil, 0, err
		}
		if found, bits, err := findMember(member, name, depth+1); found != nil || err != nil {
			return found, bits + m.Bits, err
		}
	}
	return nil, 0, nil
}

// onlyMember returns the member of a structure that has only one with a size, such as
// Unique<T>, which is NonNull<T>, which is *const T.
func onlyMember(t *dwarf.Type) (*dwarf.Member, error) {
	parts, err := t.Parts()
	if err != nil {
		return nil, err
	}
	var only *dwarf.Member
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.VariantPart || m.At != nil {
			return nil, notBound("%s is no number", t)
		}
		member, err := m.ValueType()
		if err != nil {
			return nil, err
		}
		if isEmpty(member, 0) {
			continue
		}
		if only != nil {
			return nil, notBound("%s is no number", t)
		}
		only = m
	}
	if only == nil {
		return nil, notBound("%s is empty", t)
	}
	return only, nil
}

// isEmpty reports whether a type has no data.
func isEmpty(t *dwarf.Type, depth int) bool {
	plain, err := t.Plain()
	if err != nil || depth > maxBases {
		return false
	}
	if plain.IsSized && plain.Size == 0 {
		return true
	}
	if plain.Kind != dwarf.KindStructure || plain.IsDeclaration {
		return false
	}
	parts, err := plain.Parts()
	if err != nil {
		return false
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role != dwarf.BaseClass {
			return false
		}
		if member, err := m.ValueType(); err != nil || !isEmpty(member, depth+1) {
			return false
		}
	}
	return true
}

// loaded returns the number at a place. For a structure that has one member with a size it is
// the member's.
func loaded(x *bound) (*bound, error) {
	if x.class == classNumber {
		return x, nil
	}
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object has no number")
	}
	if x.field != nil {
		return loadedField(x)
	}
	plain, err := x.t.Plain()
	if err != nil {
		return nil, err
	}
	for range maxBases {
		if plain.Kind != dwarf.KindStructure {
			break
		}
		m, err := onlyMember(plain)
		if err != nil {
			return nil, err
		}
		if x, err = part(x, m, m.Bits); err != nil {
			return nil, err
		}
		if plain, err = x.t.Plain(); err != nil {
			return nil, err
		}
	}
	size := plain.Size
	switch plain.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference, dwarf.KindSubroutine:
		if !plain.IsSized {
			size = uint64(plain.Unit().AddressSize())
		}
	case dwarf.KindBase, dwarf.KindEnumeration, dwarf.KindSubrange:
	default:
		return nil, notBound("%s is no number", plain)
	}
	if size == 0 || size > 8 {
		return nil, notBound("%s is no number of at most 8 bytes", plain)
	}
	signed := IsSigned(plain.Base)
	return x.then(classNumber, plain, func(ctx context.Context, r *run, o operand) (operand, error) {
		n, err := r.load(ctx, o.l, size)
		if signed {
			n = SignExtended(n, 8*size)
		}
		return operand{n: n}, err
	}), nil
}

// loadedField returns the number in a bit field.
func loadedField(x *bound) (*bound, error) {
	field := x.field
	if field.FieldBits > 64 {
		return nil, notBound("a bit field of %d bits", field.FieldBits)
	}
	return x.then(classNumber, x.t, func(ctx context.Context, r *run, o operand) (operand, error) {
		n, err := r.loadBits(ctx, o.l, field.FieldBits)
		return operand{n: n}, err
	}), nil
}

// deref returns the target of a pointer.
func deref(x *bound) (*bound, error) {
	n, err := loaded(x)
	if err != nil {
		return nil, err
	}
	t, err := pointee(n.t)
	if err != nil {
		return nil, err
	}
	return atAddress(n, t), nil
}

// pointee returns the type that pointers of a type point to.
func pointee(t *dwarf.Type) (*dwarf.Type, error) {
	if t == nil {
		return nil, notBound("a number is no pointer")
	}
	plain, err := t.Plain()
	if err != nil {
		return nil, err
	}
	switch plain.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference:
	default:
		return nil, notBound("%s is no pointer", plain)
	}
	e, err := plain.Element()
	if err == nil && e.Kind == dwarf.KindVoid {
		err = notBound("%s is no pointer to an object", plain)
	}
	return e, err
}

// atAddress returns the place of an object of a type at an address.
func atAddress(n *bound, t *dwarf.Type) *bound {
	return n.then(classPlace, t, func(_ context.Context, r *run, o operand) (operand, error) {
		return operand{l: r.memory(o.n)}, nil
	})
}

// index returns an element of an array, or of a pointer's target.
func (b *binder) index(e *expr) (*bound, error) {
	x, err := b.expr(e.args[0])
	if err != nil {
		return nil, err
	}
	i, err := b.number(e.args[1])
	if err != nil {
		return nil, err
	}
	if x.class == classType || x.t == nil {
		return nil, notBound("an element of what is no array")
	}
	var element *dwarf.Type
	plain, err := x.t.Plain()
	if err != nil {
		return nil, err
	}
	if x.class == classPlace && plain.Kind == dwarf.KindArray {
		element, err = plain.Element()
	} else if x, err = deref(x); err == nil {
		element = x.t
	}
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(element)
	if err != nil {
		return nil, err
	}
	return x.then(classPlace, element, func(ctx context.Context, r *run, o operand) (operand, error) {
		n, err := i.eval(ctx, r)
		if err == nil {
			o.l, err = offset(o.l, n.n, int64(min(size, 1<<62)))
		}
		return o, err
	}), nil
}

// sizeOf returns the size of a type, in bytes.
func sizeOf(t *dwarf.Type) (uint64, error) {
	plain, err := t.Plain()
	if err != nil {
		return 0, err
	}
	switch {
	case plain.IsSized:
		return plain.Size, nil
	case plain.Kind == dwarf.KindPointer && !plain.IsZero():
		return uint64(plain.Unit().AddressSize()), nil
	case plain.Kind == dwarf.KindArray:
		dimensions, err := plain.Dimensions()
		if err != nil || len(dimensions) != 1 {
			return 0, notBound("%s has no size", plain)
		}
		n, ok := dimensions[0].Elements()
		e, err := plain.Element()
		if err != nil || !ok || n > 1<<32 || !e.IsSized || e.Size > 1<<24 {
			return 0, notBound("%s has no size", plain)
		}
		return n * e.Size, nil
	}
	return 0, notBound("%s has no size", plain)
}
