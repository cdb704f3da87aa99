// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// pointer reads a pointer. If only the target is left of it, that is read.
func (r *Reader) pointer(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location, depth int) {
	if target, ok := r.implicitTarget(ctx, t, l); ok {
		r.implicit(ctx, v, t, target, depth)
		return
	}
	address, err := r.address(ctx, t, l)
	if err != nil {
		fail(v, err)
		return
	}
	text := hex(address)
	element, err := t.Element()
	if err != nil {
		setText(v, text)
		return
	}
	character := r.character(element)
	if element, err = element.Plain(); err != nil {
		setText(v, text)
		return
	}
	switch {
	case address != 0 && character != nil:
		if s, ok := r.terminated(ctx, character, r.memory(t, address)); ok {
			text += " " + s
		}
	case element.Kind == dwarf.KindSubroutine || r.frame.PointerSpace(t.Space) == locexpr.DefaultSpace && address != 0:
		if name, offset := r.frame.Symbol(address); name != "" {
			text += " " + symbolText(name, offset)
		}
	}
	setText(v, text)
	// A function of Go is an object, and may have a pointer to it like any other.
	isCode := element.Kind == dwarf.KindSubroutine && r.language != dw.LangGo
	if r.followsPointers() && address != 0 && !isCode && element.Kind != dwarf.KindVoid {
		r.follow(ctx, v, t, address, depth)
	}
}

// followsPointers reports whether users of a language expect to see the target of a pointer.
func (r *Reader) followsPointers() bool {
	return !r.limits.Raw && (r.language == dw.LangGo || r.language == dw.LangRust)
}

// follow reads the target of a pointer, as its child.
func (r *Reader) follow(ctx context.Context, v *trace.Value, t *dwarf.Type, address uint64, depth int) {
	element, err := t.Element()
	if err != nil {
		return
	}
	if depth+1 >= r.limits.Depth {
		v.IsDeep = true
		return
	}
	if !r.visit(address, element) {
		return
	}
	defer r.leave()
	child := only(v)
	r.remember(ctx, child, "*", element, r.memory(t, address), depth+1)
	child.Role = trace.RolePointee
	v.Shape = trace.ShapeWrapped
}

// only gives a value its one child.
func only(v *trace.Value) *trace.Value {
	v.Children = make([]trace.Value, 1)
	return &v.Children[0]
}

// memory returns the location of a pointer's target.
func (r *Reader) memory(t *dwarf.Type, address uint64) locexpr.Location {
	return locexpr.MemoryLocation(r.frame.PointerSpace(t.Space), address).WithScope(r.context.Scope())
}

// address reads a pointer or a reference.
func (r *Reader) address(ctx context.Context, t *dwarf.Type, l locexpr.Location) (uint64, error) {
	size := PointerSize(t, r.frame)
	if size == 0 || size > 8 {
		return 0, fmt.Errorf("a pointer of %d bytes: %w", size, errNoSize)
	}
	return r.integer(ctx, l, size)
}

// PointerSize returns the size of a pointer or a reference in bytes; 0: it is not known. Where
// its type does not have it, it is the size of an address of its space.
func PointerSize(t *dwarf.Type, f Frame) uint64 {
	space := f.PointerSpace(t.Space)
	if t.IsSized && (space == locexpr.DefaultSpace || t.Has(dw.AttrByteSize)) {
		return t.Size
	}
	return uint64(f.AddressBits(space)+7) / 8
}

// implicitTarget returns the target of a pointer that was optimized away, where only the target
// is left (DW_OP_implicit_pointer; heterogeneous extension, A.2.5.4.4.5).
func (r *Reader) implicitTarget(ctx context.Context, t *dwarf.Type, l locexpr.Location) (locexpr.Location, bool) {
	p := wholePart(l, t.Size*8).Place(0)
	entry, displacement, ok := p.ImplicitPointer()
	if !ok || p.BitOffset != 0 {
		return locexpr.Location{}, false
	}
	c, ok := r.context.(locexpr.EntryContext)
	if !ok {
		return locexpr.Location{}, false
	}
	target, err := c.EntryLocation(ctx, entry)
	if err != nil {
		return locexpr.UndefinedLocation(), true
	}
	if target, err = target.Offset(displacement * 8); err != nil {
		return locexpr.UndefinedLocation(), true
	}
	return target, true
}

// wholePart returns the part of a composite that a number of its bits are, where they are the
// whole part.
func wholePart(l locexpr.Location, bits uint64) locexpr.Location {
	for range 8 {
		p := l.Place(0)
		if l.NumPlaces() != 1 || p.Storage != locexpr.Composite {
			return l
		}
		offset := p.BitOffset
		found := false
		for _, part := range p.Parts() {
			if offset == 0 && part.Bits >= bits {
				l, found = part.Location, true
				break
			}
			if offset < part.Bits {
				inner, err := part.Location.Offset(int64(offset))
				if err != nil {
					return l
				}
				l, found = inner, part.Bits-offset >= bits
				break
			}
			offset -= part.Bits
		}
		if !found {
			return l
		}
	}
	return l
}

// implicit reads the target of an implicit pointer, as its child.
func (r *Reader) implicit(ctx context.Context, v *trace.Value, t *dwarf.Type, target locexpr.Location, depth int) {
	setText(v, "<implicit pointer>")
	element, err := t.Element()
	if err != nil || depth+1 >= r.limits.Depth {
		v.IsDeep = err == nil
		return
	}
	child := only(v)
	r.read(ctx, child, "*", element, target, depth+1)
	child.Role = trace.RolePointee
	v.Shape = trace.ShapeWrapped
}

// reference reads the object that a reference refers to, as the value itself.
func (r *Reader) reference(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location, depth int) {
	target, ok := r.implicitTarget(ctx, t, l)
	element, err := t.Element()
	if err != nil {
		fail(v, err)
		return
	}
	if !ok {
		address, err := r.address(ctx, t, l)
		if err != nil {
			fail(v, err)
			return
		}
		if address == 0 {
			setText(v, "<null reference>")
			return
		}
		if !r.visit(address, element) {
			setText(v, fmt.Sprintf("@%#x", address))
			return
		}
		defer r.leave()
		target = r.memory(t, address)
	}
	typ, name := v.Type, v.Name
	r.remember(ctx, v, name, element, target, depth)
	v.Type = typ
}

// memberPointer reads a pointer to a member: for data an offset, for a function its address and
// the adjustment of this (Itanium C++ ABI, 2.3). MSVC has the address alone where no adjustment can be.
func (r *Reader) memberPointer(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location) {
	b, err := r.bytes(ctx, l, t.Size)
	if err != nil {
		fail(v, err)
		return
	}
	order := r.context.ByteOrder()
	word := uint64(t.Unit().AddressSize())
	switch isFunction := pointsToFunction(t); {
	case isFunction && t.Size == word:
		text := "NULL"
		if address := integer(b, order); address != 0 {
			text = r.symbolText(address)
		}
		setText(v, text)
		return
	case !isFunction && t.Size <= 8:
		n := integer(b, order)
		if n == ^uint64(0)>>(64-8*t.Size) {
			setText(v, "NULL")
			return
		}
		setText(v, r.memberName(t, n))
		return
	}
	half := t.Size / 2
	if half > 8 {
		fail(v, errNoSize)
		return
	}
	address, adjustment := integer(b[:half], order), integer(b[half:2*half], order)
	text := "NULL"
	switch {
	case address&1 != 0:
		text = fmt.Sprintf("&virtual table offset %d", address-1)
	case address != 0:
		text = r.symbolText(address)
	}
	if adjustment != 0 {
		text += fmt.Sprintf(", this adjustment %d", int64(adjustment))
	}
	setText(v, text)
}

// pointsToFunction reports whether a pointer to a member is one to a function.
func pointsToFunction(t *dwarf.Type) bool {
	target, err := t.Element()
	if err == nil {
		target, err = target.Plain()
	}
	return err == nil && target.Kind == dwarf.KindSubroutine
}

// memberName returns the member at an offset of the class of a pointer to a member.
func (r *Reader) memberName(t *dwarf.Type, offset uint64) string {
	number := fmt.Sprintf("%d", offset)
	e, err := t.Reference(dw.AttrContainingType)
	if err != nil || e.IsZero() {
		return number
	}
	class, err := e.AsType()
	if err != nil {
		return number
	}
	parts, err := class.Parts()
	if err != nil {
		return number
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		if m.Role == dwarf.DataMember && m.FieldBits == 0 && m.At == nil && m.Bits == int64(offset)*8 && m.Name != "" {
			return "&" + class.String() + "::" + m.Name
		}
	}
	return number
}

// symbolText returns an address with the symbol there.
func (r *Reader) symbolText(address uint64) string {
	text := hex(address)
	if name, offset := r.frame.Symbol(address); name != "" {
		text += " " + symbolText(name, offset)
	}
	return text
}

func symbolText(name string, offset uint64) string {
	if offset == 0 {
		return "<" + name + ">"
	}
	return fmt.Sprintf("<%s+%d>", name, offset)
}

// character returns the type of the characters of strings, if a type is such a type or a name
// of one; nil for another type.
func (r *Reader) character(t *dwarf.Type) *locexpr.BaseType {
	base := named(t)
	if base == nil || base.Elements > 0 || !r.hasCharacters() {
		return nil
	}
	switch base.Encoding {
	case locexpr.EncodingSignedChar, locexpr.EncodingUnsignedChar:
		if base.Bits == 8 {
			return base
		}
	case locexpr.EncodingUTF:
		if base.Bits == 8 || base.Bits == 16 || base.Bits == 32 {
			return base
		}
	}
	if isCharacterName(base.Name) && base.Bits%8 == 0 && base.Bits <= 32 {
		return base
	}
	return nil
}

// terminated reads a string that ends in a character 0.
func (r *Reader) terminated(ctx context.Context, t *locexpr.BaseType, l locexpr.Location) (string, bool) {
	size := t.Size() / 8
	var codes []rune
	// Memory is read piece by piece: the string may lie right before unreadable memory.
	const piece = 16
	for len(codes) < r.limits.Elements {
		place, err := l.Offset(int64(uint64(len(codes)) * size * 8))
		if err != nil {
			break
		}
		b, err := r.bytes(ctx, place, piece*size)
		n := piece
		if err != nil {
			if b, err = r.bytes(ctx, place, size); err != nil {
				if len(codes) == 0 {
					return "", false
				}
				return quoted(codes, t) + "...", true
			}
			n = 1
		}
		for i := range n {
			c := rune(integer(b[uint64(i)*size:uint64(i+1)*size], r.context.ByteOrder()))
			if c == 0 {
				return quoted(codes, t), true
			}
			if codes = append(codes, c); len(codes) == r.limits.Elements {
				break
			}
		}
	}
	return quoted(codes, t) + "...", true
}

// quoted returns a string in quotes.
func quoted(codes []rune, t *locexpr.BaseType) string {
	b := make([]byte, 0, len(codes)+8)
	b = append(b, charPrefix(t)...)
	b = append(b, '"')
	wasNumber := false
	for _, c := range codes {
		if isPlain := c >= ' ' && c < 0x7f && c != '"' && c != '\\'; isPlain && !(wasNumber && c >= '0' && c <= '9') {
			b, wasNumber = append(b, byte(c)), false
			continue
		}
		s := escaped(c, t.Bits, '"')
		if wasNumber && len(s) == 1 && s[0] >= '0' && s[0] <= '9' {
			s = octal(s[0]) // it would be read as part of the number before
		}
		b = append(b, s...)
		wasNumber = len(s) == 4 && s[0] == '\\' && s[1] <= '3'
	}
	return string(append(b, '"'))
}

// octal returns a byte as an octal escape.
func octal(c byte) string { return string([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7}) }
