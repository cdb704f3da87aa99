package spirv

import (
	"fmt"
	"strconv"
	"strings"
)

// Opaque says whether a record describes an opaque type of the source language:
// a DebugTypeComposite without members, of a size that is DebugInfoNone, whose
// name begins with @ (DebugInfo, 4.3).
func (m *Module) Opaque(r *Record) bool {
	if r.Op != DebugTypeComposite || len(r.rest("Members")) != 0 || !strings.HasPrefix(m.stringOf(r, "Name"), "@") {
		return false
	}
	size, ok := r.id("Size")
	op, isRecord := m.recordOp(size)
	return ok && isRecord && op == DebugInfoNone
}

// unknownType stands for a type that nothing is said of.
const unknownType = "?"

// maxTypeName bounds the name of a type, in bytes.
const maxTypeName = 512

// maxTypeParts bounds the types that one name is made of.
const maxTypeParts = 64

// TypeName is what the source language would call the type of an ID: "int*",
// "const float[4]", "int(Outer*, int)". A part that is DebugInfoNone, or nothing
// that describes a type, is "?".
func (m *Module) TypeName(id uint32) string {
	var t typeNamer
	return t.name(m, id)
}

// typeNamer counts how many types it named, so that one that refers to another
// many times costs little.
type typeNamer struct{ count int }

// name is the name of a type, cut where it is long.
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
	base := func(operand string) string {
		w, ok := r.id(operand)
		if !ok {
			return unknownType
		}
		return t.name(m, w)
	}
	named := func(otherwise string) string {
		if s := m.stringOf(r, "Name"); s != "" {
			return s
		}
		return otherwise
	}
	switch r.Op {
	case DebugTypeBasic, DebugTypedef:
		return named(unknownType)
	case DebugTypeEnum:
		return named("enum")
	case DebugTypeComposite:
		if m.Opaque(r) {
			return m.stringOf(r, "Name")[1:]
		}
		tag, _ := m.number(r, "Tag")
		return named([]string{"class", "struct", "union", unknownType}[min(tag, 3)])
	case DebugTypePointer:
		flags, _ := m.number(r, "Flags")
		switch {
		case flags&flagLValueReference != 0:
			return base("BaseType") + "&"
		case flags&flagRValueReference != 0:
			return base("BaseType") + "&&"
		}
		return base("BaseType") + "*"
	case DebugTypeQualifier:
		q, _ := m.number(r, "TypeQualifier")
		word := []string{"const", "volatile", "restrict", "_Atomic", unknownType}[min(q, 4)]
		if b := m.target(r, "BaseType"); b != nil && b.Op == DebugTypePointer {
			return base("BaseType") + " " + word
		}
		return word + " " + base("BaseType")
	case DebugTypeArray:
		var b strings.Builder
		for _, w := range r.rest("ComponentCounts") {
			if v, _, ok := m.constant(w); ok && v != 0 {
				fmt.Fprintf(&b, "[%d]", v)
			} else if op, isRecord := m.recordOp(w); !isRecord || op != DebugInfoNone {
				b.WriteString("[]")
			}
			if b.Len() > maxTypeName {
				break
			}
		}
		return base("BaseType") + b.String()
	case DebugTypeVector:
		n, ok := m.number(r, "ComponentCount")
		if !ok {
			return base("BaseType") + unknownType
		}
		return fmt.Sprintf("%s%d", base("BaseType"), n)
	case DebugTypeMatrix:
		n, ok := m.number(r, "VectorCount")
		if !ok {
			return base("VectorType") + unknownType
		}
		return fmt.Sprintf("%sx%d", base("VectorType"), n)
	case DebugTypeFunction:
		var parameters []string
		for _, w := range r.rest("ParameterTypes") {
			if t.count > maxTypeParts {
				break
			}
			parameters = append(parameters, t.name(m, w))
		}
		return base("ReturnType") + "(" + strings.Join(parameters, ", ") + ")"
	case DebugTypePtrToMember:
		return base("MemberType") + " " + base("Parent") + "::*"
	case DebugTypeTemplate:
		return base("Target")
	case DebugTypeMember:
		return base("Type")
	}
	return unknownType
}

func constantText(v uint64) string { return strconv.FormatUint(v, 10) }
