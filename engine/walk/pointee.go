// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
)

// maxMemberDepth is how deep a member may lie in members of members.
const maxMemberDepth = 8

// MemberAt names the member with a byte at an offset in the structure that a variable of the
// frame points to: "value", "head.next", "list[3].name"; "" where the variable is no pointer to
// a structure, several have its name, or there is no member.
func (a Activation) MemberAt(variable string, offset int64) (path string) {
	_ = object.Guard(func() error { // unreadable members have no name
		if a.frame.module == nil || offset < 0 {
			return nil
		}
		scope := a.frame.module.Code.VariablesIn(a.frame.lookup, a.frame.function())
		if scope == nil {
			return nil
		}
		var typ *dwarf.Type
		for i := range scope.List {
			if v := &scope.List[i]; v.Name == variable && !v.IsShadowed {
				if typ != nil {
					return nil
				}
				typ = v.Type
			}
		}
		path = memberAt(pointee(typ), uint64(offset), nil, maxMemberDepth)
		if path != "" && path[0] == '.' {
			path = path[1:]
		}
		return nil
	})
	return path
}

// pointee returns the type that a pointer or a reference points to; nil for other types.
func pointee(t *dwarf.Type) *dwarf.Type {
	if t = plain(t); t == nil {
		return nil
	}
	switch t.Kind {
	case dwarf.KindPointer, dwarf.KindReference, dwarf.KindRvalueReference:
		element, err := t.Element()
		if err != nil {
			return nil
		}
		return plain(element)
	}
	return nil
}

// plain returns the defined type behind a type's names; nil where it cannot be read.
func plain(t *dwarf.Type) *dwarf.Type {
	if t == nil {
		return nil
	}
	p, err := t.Plain()
	if err != nil {
		return nil
	}
	return p.Complete()
}

// memberAt returns the path of the innermost member that has a byte at an offset, with the dot
// or bracket that begins it. In a union it is the first one. Of types with names in whole the
// members are left out.
func memberAt(t *dwarf.Type, offset uint64, whole map[string]bool, depth int) string {
	if t == nil || depth == 0 || whole[t.Name] {
		return ""
	}
	switch t.Kind {
	case dwarf.KindArray:
		if dimensions, err := t.Dimensions(); err != nil || len(dimensions) != 1 {
			return ""
		}
		element, err := t.Element()
		if element = plain(element); err != nil || element == nil || !element.IsSized || element.Size == 0 {
			return ""
		}
		return "[" + strconv.FormatUint(offset/element.Size, 10) + "]" + memberAt(element, offset%element.Size, whole, depth-1)
	case dwarf.KindStructure, dwarf.KindUnion:
	default:
		return ""
	}
	parts, err := t.Parts()
	if err != nil {
		return ""
	}
	for i := range parts.Members {
		m := &parts.Members[i]
		element := plain(m.Type)
		begin := uint64(m.Bits) / 8 //nolint:gosec // checked below
		if m.At != nil || m.Bits < 0 || element == nil || offset < begin || offset-begin >= max(sizeOf(element), 1) {
			continue
		}
		switch {
		case m.Role == dwarf.BaseClass:
			if path := memberAt(element, offset-begin, whole, depth-1); path != "" {
				return path
			}
		case m.Role == dwarf.DataMember:
			name := ""
			if m.Name != "" {
				name = "." + m.Name
			}
			return name + memberAt(element, offset-begin, whole, depth-1)
		}
	}
	return ""
}

// sizeOf returns the size of a type in bytes; for an array of one dimension without a size,
// from its elements; 0 where it is not known.
func sizeOf(t *dwarf.Type) uint64 {
	if t.IsSized || t.Kind != dwarf.KindArray {
		return t.Size
	}
	element, err := t.Element()
	dimensions, problem := t.Dimensions()
	if element = plain(element); err != nil || problem != nil || element == nil || len(dimensions) != 1 {
		return 0
	}
	d := &dimensions[0]
	count := d.Count.Value
	if !d.Count.IsKnown && d.Upper.IsKnown {
		count = d.Upper.Value - d.Lower.Value + 1
	}
	if count <= 0 || count > 1<<31 || element.Size > 1<<31 {
		return 0
	}
	return element.Size * uint64(count)
}
