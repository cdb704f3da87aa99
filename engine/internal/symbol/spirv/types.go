// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"strconv"
	"strings"
)

// IsOpaque reports whether a record describes an opaque type of the source language: a
// DebugTypeComposite without members, of a size that is DebugInfoNone, whose name begins
// with @ (DebugInfo, 4.3).
func (m *Module) IsOpaque(r *Record) bool {
	if r.Op != DebugTypeComposite || len(r.rest("Members")) != 0 || !strings.HasPrefix(m.stringOf(r, "Name"), "@") {
		return false
	}
	size, ok := r.id("Size")
	op, isRecord := m.recordOp(size)
	return ok && isRecord && op == DebugInfoNone
}

// unknownType is the name of an undescribed type.
const unknownType = "?"

// maxTypeName bounds the name of a type, in bytes.
const maxTypeName = 512

// maxTypeParts bounds the types in one name.
const maxTypeParts = 64

// TypeName is the type of an ID in the syntax of the source language: "int*", "const
// float[4]", "int(Outer*, int)". A part that is DebugInfoNone, or does not describe a type,
// is "?".
func (m *Module) TypeName(id uint32) string {
	var t typeNamer
	return t.name(m, id)
}

// typeNamer counts the types that it named, so that one that refers to another many times
// costs little.
type typeNamer struct{ count int }

// name is the name of a type, cut where it is too long.
func (t *typeNamer) name(m *Module, id uint32) string {
	if t.count++; t.count > maxTypeParts {
		return "..."
	}
	name := t.whole(m, id)
	if len(name) > maxTypeName {
		return strings.ToValidUTF8(name[:maxTypeName], "") + "..."
	}
	return name
}

func (t *typeNamer) whole(m *Module, id uint32) string {
	if m.isVoid(id) {
		return "void"
	}
	r := m.find(id)
	if r == nil {
		return unknownType
	}
	base := func(operand string) string { return t.base(m, r, operand) }
	named := func(otherwise string) string {
		if s := m.stringOf(r, "Name"); s != "" {
			return s
		}
		return otherwise
	}
	switch r.Op {
	case DebugTypeBasic, DebugTypedef, DebugTypeString:
		return named(unknownType)
	case DebugTypeEnum:
		return named("enum")
	case DebugTypeComposite:
		if m.IsOpaque(r) {
			return m.stringOf(r, "Name")[1:]
		}
		tag, _ := m.number(r, "Tag")
		return named([]string{"class", "struct", "union", unknownType}[min(tag, 3)])
	case DebugTypePointer:
		return base("BaseType") + m.pointerMark(r)
	case DebugTypeQualifier:
		q, _ := m.number(r, "TypeQualifier")
		word := []string{"const", "volatile", "restrict", "_Atomic", unknownType}[min(q, 4)]
		if b := m.target(r, "BaseType"); b != nil && b.Op == DebugTypePointer {
			return base("BaseType") + " " + word
		}
		return word + " " + base("BaseType")
	case DebugTypeArray, DebugTypeArrayDynamic:
		return base("BaseType") + m.arrayBounds(r)
	case DebugTypeVector:
		return base("BaseType") + m.count(r, "ComponentCount")
	case DebugTypeVectorIdEXT:
		return base("ComponentType") + m.count(r, "ComponentCount")
	case DebugTypeMatrix:
		if n := m.count(r, "VectorCount"); n != unknownType {
			return base("VectorType") + "x" + n
		}
		return base("VectorType") + unknownType
	case DebugTypeCooperativeMatrixKHR:
		return fmt.Sprintf("coopmat<%s, %s, %s, %s, %s>", base("ComponentType"), m.enum(r, "Scope"), m.count(r, "Rows"), m.count(r, "Columns"), m.enum(r, "Use"))
	case DebugTypeFunction:
		parameters := t.parameters(m, r)
		return base("ReturnType") + parameters
	case DebugTypePtrToMember:
		return base("MemberType") + " " + base("Parent") + "::*"
	case DebugTypeTemplate:
		return base("Target")
	case DebugTypeMember:
		return base("Type")
	}
	return unknownType
}

// base is the name of the type that an operand refers to.
func (t *typeNamer) base(m *Module, r *Record, operand string) string {
	w, ok := r.id(operand)
	if !ok {
		return unknownType
	}
	return t.name(m, w)
}

// parameters are the parameters of the type of a function: "(int, float)".
func (t *typeNamer) parameters(m *Module, r *Record) string {
	var list []string
	for _, w := range r.rest("ParameterTypes") {
		if t.count > maxTypeParts {
			break
		}
		list = append(list, t.name(m, w))
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// pointerMark is the mark of a pointer or a reference after its target.
func (m *Module) pointerMark(r *Record) string {
	flags, _ := m.number(r, "Flags")
	switch {
	case flags&flagLValueReference != 0:
		return "&"
	case flags&flagRValueReference != 0:
		return "&&"
	}
	return "*"
}

// count is a number in a type; unknownType where it is known only when the module runs.
func (m *Module) count(r *Record, name string) string {
	n, ok := m.number(r, name)
	if !ok {
		return unknownType
	}
	return constantText(n)
}

// enum is the name of a number of a kind; unknownType where it has none.
func (m *Module) enum(r *Record, name string) string {
	n, ok := m.number(r, name)
	if !ok {
		return unknownType
	}
	text, _ := r.Set.enumText(r.Layout.Parameters[r.Layout.find(name)].Kind, n)
	return text
}

// arrayBounds are the dimensions of an array: "[2][5]", "[]" where a number is unknown.
func (m *Module) arrayBounds(r *Record) string {
	var b strings.Builder
	for _, w := range r.rest("ComponentCounts") {
		if n := m.elements(w); n != 0 {
			fmt.Fprintf(&b, "[%d]", n)
		} else if op, isRecord := m.recordOp(w); !isRecord || op != DebugInfoNone {
			b.WriteString("[]")
		}
		if b.Len() > maxTypeName {
			break
		}
	}
	return b.String()
}

// elements is the number of elements in a dimension of an array, a constant or a
// DebugTypeSubrange; 0: unknown.
func (m *Module) elements(id uint32) uint64 {
	s := m.find(id)
	if s == nil || s.Op != DebugTypeSubrange {
		n, _, _ := m.constant(id)
		return n
	}
	number := func(name string) (uint64, bool) {
		w, _ := s.id(name)
		n, _, ok := m.constant(w)
		return n, ok
	}
	if n, ok := number("Count"); ok {
		return n
	}
	lower, hasLower := number("LowerBound")
	if upper, ok := number("UpperBound"); ok && hasLower && int64(upper) >= int64(lower) {
		return upper - lower + 1
	}
	return 0
}

func constantText(v uint64) string { return strconv.FormatUint(v, 10) }
