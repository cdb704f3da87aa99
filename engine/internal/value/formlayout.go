// SPDX-License-Identifier: Apache-2.0

package value

import (
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
)

// This file computes the places of objects that no member describes, by the sizes and
// alignments of types.

// callDerived binds derived(x, T, U...), the first member that a class has after its base x,
// among its members of types T, U...: it may be in the padding at the end of the base.
func (b *binder) callDerived(args []*expr) (*bound, error) { return b.following(args, dataSize) }

// dataSize returns the size of a structure's data, without the padding after it.
func dataSize(t *dwarf.Type) (uint64, error) {
	plain, err := t.Plain()
	if err != nil {
		return 0, err
	}
	if plain.Kind != dwarf.KindStructure {
		return sizeOf(plain)
	}
	parts, err := plain.Parts()
	if err != nil {
		return 0, err
	}
	end := uint64(0)
	for i := range parts.Members {
		m := &parts.Members[i]
		element, err := m.ValueType()
		if err != nil {
			return 0, err
		}
		size, err := sizeOf(element)
		if err != nil {
			return 0, err
		}
		if m.Bits < 0 || m.At != nil || m.FieldBits > 0 {
			return 0, notBound("%s has no size of its own", plain)
		}
		end = max(end, uint64(m.Bits)/8+size)
	}
	return end, nil
}

// callAfter binds after(x, T), the object of type T that follows the object x, aligned as
// members are, or after(x, T, U...), the first member of a structure that follows x, which has
// members of the other types too.
func (b *binder) callAfter(args []*expr) (*bound, error) { return b.following(args, sizeOf) }

func (b *binder) following(args []*expr, sizeOf func(*dwarf.Type) (uint64, error)) (*bound, error) {
	x, err := b.expr(args[0])
	if err != nil {
		return nil, err
	}
	if x.class != classPlace || x.t == nil {
		return nil, notBound("what is no object is followed by none")
	}
	size, err := sizeOf(x.t)
	if err != nil {
		return nil, err
	}
	if size > 1<<32 {
		return nil, notBound("%s is too large", x.t)
	}
	var first *dwarf.Type
	align := uint64(1)
	for _, a := range args[1:] {
		t, err := b.typeArg(a)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = t
		}
		align = max(align, alignment(t, 0))
	}
	size = (size + align - 1) &^ (align - 1)
	return &bound{class: classPlace, t: first, eval: moved(x, int64(size*8))}, nil
}

// alignment returns the alignment of a type's objects: its own attribute, else its members'
// alignment, or its size.
func alignment(t *dwarf.Type, depth int) uint64 {
	plain, err := t.Plain()
	if err != nil || plain.IsZero() || depth > maxBases {
		return 1
	}
	if n, ok, err := plain.Number(dw.AttrAlignment); ok && err == nil && n > 0 && n <= 1<<16 && n&(n-1) == 0 {
		return uint64(n)
	}
	switch plain.Kind {
	case dwarf.KindArray:
		if e, err := plain.Element(); err == nil {
			return alignment(e, depth+1)
		}
	case dwarf.KindStructure, dwarf.KindUnion:
		parts, err := plain.Parts()
		most := uint64(1)
		if err != nil {
			return most
		}
		for i := range parts.Members {
			if element, err := parts.Members[i].ValueType(); err == nil {
				most = max(most, alignment(element, depth+1))
			}
		}
		return most
	}
	n, err := sizeOf(plain)
	if err != nil || n == 0 || n&(n-1) != 0 {
		return 1
	}
	if plain.Unit().AddressSize() == 4 {
		return min(n, 4)
	}
	return min(n, 16)
}
