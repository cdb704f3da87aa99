// SPDX-License-Identifier: Apache-2.0

// Package typelayout reads from debug information where types have their members, and the
// values of constants: how a program keeps its data.
package typelayout

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// maxType bounds the size of a type, in bytes. The state of CPython 3.13 has 600 KiB.
const maxType = 1 << 28

const (
	// maxSteps bounds how many types are passed through on the way to one.
	maxSteps = 16
	// maxInside bounds the members without a name, and the base classes, in which a member is
	// searched.
	maxInside = 1 << 10
)

// plainType returns the type of a variable or member, without typedefs and qualifiers.
func plainType(e dwarf.Entry) (dwarf.Entry, error) {
	t, err := e.Type()
	if err == nil && t.IsZero() {
		err = fmt.Errorf("%v: its type is not found", e)
	}
	if err != nil {
		return t, err
	}
	return withoutNames(t)
}

// withoutNames returns the type that typedefs and qualifiers stand for.
func withoutNames(t dwarf.Entry) (plain dwarf.Entry, err error) {
	plain = t
	for range maxSteps {
		if err != nil || plain.IsZero() {
			break
		}
		switch plain.Tag() {
		case dw.TagTypedef, dw.TagConstType, dw.TagVolatileType, dw.TagAtomicType:
			plain, err = plain.Type()
		default:
			return plain, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%v: its type is not found", t)
	}
	return plain, err
}

// sizeOf returns the size of a structure or another type that has members, in bytes.
func sizeOf(t dwarf.Entry) (uint64, error) {
	n, ok, err := t.Number(dw.AttrByteSize)
	switch {
	case err != nil:
		return 0, err
	case !ok || n <= 0 || n > maxType:
		return 0, fmt.Errorf("%v: %s has %d bytes, expected 1 to %d", t, t.Name(), n, maxType)
	}
	return uint64(n), nil
}

// findMember finds a member of a type by a path through nested members, as "sched.pc", and its
// place in the type.
func findMember(t dwarf.Entry, path string) (e dwarf.Entry, place sdk.MemberPlace, err error) {
	left := maxInside
	for name := range strings.SplitSeq(path, ".") {
		if !e.IsZero() {
			if t, err = plainType(e); err != nil {
				return e, place, err
			}
		}
		var offset uint64
		if e, offset, err = member(t, name, &left); err != nil {
			return e, place, err
		}
		if place.Offset += offset; place.Offset > maxType {
			return e, place, fmt.Errorf("%v: %s lies at %#x, expected at most %#x", e, path, place.Offset, maxType)
		}
	}
	size, ok := e.Size()
	if !ok || size == 0 || size > maxType {
		return e, place, fmt.Errorf("%v: the size of %s is not known", e, path)
	}
	place.Size = size
	return e, place, nil
}

// hasMembers are the types that have members.
var hasMembers = map[dw.Tag]bool{dw.TagStructureType: true, dw.TagClassType: true, dw.TagUnionType: true}

// member returns a member of a type, which may be in a member without a name or in a base
// class, and its offset. left is in how many of these it may yet be searched.
func member(t dwarf.Entry, name string, left *int) (e dwarf.Entry, offset uint64, err error) {
	if !hasMembers[t.Tag()] {
		return t, 0, fmt.Errorf("%v: expected a struct with a member %s, found tag %#x", t, name, uint16(t.Tag()))
	}
	var inside []dwarf.Entry
	for e, err := range t.Children() {
		switch {
		case err != nil:
			return e, 0, err
		case e.Tag() == dw.TagInheritance, e.Tag() == dw.TagMember && e.Name() == "":
			inside = append(inside, e)
		case e.Tag() == dw.TagMember && e.Name() == name:
			offset, err = offsetOf(e, t.Tag(), name)
			return e, offset, err
		}
	}
	for _, around := range inside {
		if *left--; *left < 0 {
			break
		}
		if inner, err := plainType(around); err == nil {
			if e, within, err := member(inner, name, left); err == nil {
				offset, err = offsetOf(around, t.Tag(), name)
				return e, offset + within, err
			}
		}
	}
	return dwarf.Entry{}, 0, fmt.Errorf("%v: %s has no member %s", t, t.Name(), name)
}

// offsetOf returns the offset of a member in a type of a tag. Members of unions need not have
// one.
func offsetOf(e dwarf.Entry, around dw.Tag, name string) (uint64, error) {
	n, ok, err := e.Number(dw.AttrDataMemberLocation)
	if err == nil && !ok && around == dw.TagUnionType && !e.Has(dw.AttrDataMemberLocation) {
		return 0, nil
	}
	if err != nil || !ok || n < 0 || n > maxType {
		return 0, fmt.Errorf("%v: expected a constant DW_AT_data_member_location of %s", e, name)
	}
	return uint64(n), nil
}
