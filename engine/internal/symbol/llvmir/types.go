// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"strconv"
	"strings"
)

const (
	maxTypeNodes = 64
	maxTypeName  = 1 << 12 // bytes
)

// itoa is a small number as text.
func itoa(n int32) string { return strconv.Itoa(int(n)) }

// prefixes and suffixes are C's text before and after a type, by the tag of the derived
// type.
var (
	suffixes = map[string]string{
		"DW_TAG_pointer_type": "*", "DW_TAG_reference_type": "&", "DW_TAG_rvalue_reference_type": "&&",
	}
	prefixes = map[string]string{
		"DW_TAG_const_type": "const ", "DW_TAG_volatile_type": "volatile ", "DW_TAG_restrict_type": "restrict ", "DW_TAG_atomic_type": "_Atomic ",
	}
)

// typeName is a type in C's syntax; "" where it has no such name.
func (m *Module) typeName(v Value) string {
	w := typeWriter{m, maxTypeNodes}
	if text := w.name(v); w.left >= 0 {
		return text
	}
	return ""
}

// typeWriter writes types. Types may refer to themselves, so it reads a bounded number of
// nodes.
type typeWriter struct {
	*Module
	left int
}

func (w *typeWriter) name(v Value) string {
	if w.left--; w.left < 0 {
		return ""
	}
	n, ok := w.valueNode(&v)
	if !ok && v.Kind == StringValue { // by its identifier, until LLVM 3.9
		n, ok = w.open(Ref(w.identified()[v.Text]))
	}
	if !ok {
		return ""
	}
	text := w.node(&n)
	if len(text) > maxTypeName {
		return ""
	}
	return text
}

func (w *typeWriter) node(n *Node) string {
	name, tag := n.Field("name"), n.Field("tag")
	switch n.Kind {
	case "DIDerivedType":
		if name.str() != "" && tag.Text != "DW_TAG_member" && tag.Text != "DW_TAG_inheritance" {
			return name.str()
		}
		baseType := w.name(n.Field("baseType"))
		if base := n.Field("baseType"); base.Kind == NullValue {
			baseType = "void"
		}
		if baseType == "" {
			return ""
		}
		if suffix, ok := suffixes[tag.Text]; ok {
			return baseType + suffix
		}
		if prefix, ok := prefixes[tag.Text]; ok {
			if strings.HasSuffix(baseType, "*") { // of the pointer, not of its target
				return baseType + " " + strings.TrimSuffix(prefix, " ")
			}
			return prefix + baseType
		}
		return ""
	case "DICompositeType":
		if tag.Text == "DW_TAG_array_type" && name.str() == "" {
			return w.array(n)
		}
		return name.str()
	case "DISubroutineType":
		return w.function(n)
	}
	return name.str()
}

// array writes T[5][7].
func (w *typeWriter) array(n *Node) string {
	element := w.name(n.Field("baseType"))
	elements := n.Field("elements")
	list, ok := w.valueNode(&elements)
	if element == "" || !ok {
		return ""
	}
	if len(list.Fields) > maxTypeName {
		return ""
	}
	counts := make([]int64, len(list.Fields))
	for i := range list.Fields {
		counts[i] = -1
		if r, ok := w.valueNode(&list.Fields[i].Value); ok {
			counts[i] = countOf(&r)
		}
	}
	if w.hasCountsAsBounds(n, counts) {
		for i := range counts {
			counts[i]--
		}
	}
	var b strings.Builder
	b.WriteString(element)
	for _, k := range counts {
		if b.Len() > maxTypeName {
			return ""
		}
		b.WriteByte('[')
		if k >= 0 {
			b.WriteString(strconv.FormatInt(k, 10))
		}
		b.WriteByte(']')
	}
	return b.String()
}

// hasCountsAsBounds reports whether the upper bounds of an array's subranges are counts:
// LLVM 3.6 writes counts where the document has the highest indexes. The size of the array
// tells them apart.
func (w *typeWriter) hasCountsAsBounds(n *Node, counts []int64) bool {
	base, arraySize := n.Field("baseType"), n.Field("size")
	element, ok := w.valueNode(&base)
	elementSize := element.Field("size")
	whole, isKnown := arraySize.Int()
	bits, isElementKnown := elementSize.Int()
	if !ok || !isKnown || !isElementKnown || bits <= 0 || whole <= 0 {
		return false
	}
	rest := whole / bits
	for _, k := range counts {
		if k <= 1 || rest%(k-1) != 0 {
			return false
		}
		rest /= k - 1
	}
	return rest == 1 && len(counts) > 0
}

// countOf is the number of elements of a subrange; -1: unknown.
func countOf(n *Node) int64 {
	count, low, high := n.Field("count"), n.Field("lowerBound"), n.Field("upperBound")
	if k, ok := count.Int(); ok && k >= 0 {
		return k
	}
	first, _ := low.Int()
	if last, ok := high.Int(); ok && last >= first && last-first >= 0 && last-first < 1<<62 {
		return last - first + 1
	}
	return -1
}

// function writes T(T, T).
func (w *typeWriter) function(n *Node) string {
	types := n.Field("types")
	list, ok := w.valueNode(&types)
	if !ok || len(list.Fields) == 0 {
		return ""
	}
	parts := make([]string, 0, len(list.Fields))
	total := 0
	for i := range list.Fields {
		v := list.Fields[i].Value
		part := w.name(v)
		switch {
		case v.Kind == NullValue && i == 0:
			part = "void"
		case v.Kind == NullValue:
			part = "..."
		case part == "":
			return ""
		}
		if total += len(part); total > maxTypeName {
			return ""
		}
		parts = append(parts, part)
	}
	return parts[0] + "(" + strings.Join(parts[1:], ", ") + ")"
}
