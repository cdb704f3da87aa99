// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
)

// style is how a language writes values.
type style struct {
	open, close           string // around members
	openArray, closeArray string
	openMap, closeMap     string // around entries
	openKey, closeKey     string // around the key of an entry
	equals                string // between a member's name and its value
	is                    string // between a summary and the value it summarises
	hasTypes              bool   // a structure's type comes before it
}

var (
	styleOfC = &style{
		open: "{", close: "}", openArray: "{", closeArray: "}", openMap: "{", closeMap: "}", openKey: "[", closeKey: "] = ",
		equals: " = ", is: " = ",
	}
	styleOfRust = &style{
		open: " {", close: "}", openArray: "[", closeArray: "]", openMap: "{", closeMap: "}", closeKey: ": ",
		equals: ": ", is: " = ", hasTypes: true,
	}
	styleOfGo = &style{
		open: " {", close: "}", openArray: "[", closeArray: "]", openMap: "[", closeMap: "]", closeKey: ": ",
		equals: ": ", is: ", ", hasTypes: true,
	}
)

func styleOf(language uint64) *style {
	switch language {
	case dw.LangRust:
		return styleOfRust
	case dw.LangGo:
		return styleOfGo
	}
	return styleOfC
}

const (
	// maxLine bounds the text of a value, in bytes.
	maxLine = 1 << 14
	// repeats is the number of equal elements from which on they are written once.
	repeats = 10
)

// Line returns the value in one line, in the style of a language, which is a DW_AT_language.
func Line(v *trace.Value, language uint64) string {
	w := lineWriter{style: styleOf(language)}
	w.value(v)
	if w.Len() > maxLine {
		return w.String()[:maxLine] + "..."
	}
	return w.String()
}

// Short returns the value with its Line as its text, and without its parts: enough where only
// that will be printed.
func Short(v *trace.Value, language uint64) trace.Value {
	return trace.Value{Name: v.Name, Type: v.Type, Text: Line(v, language), HasText: true, Status: trace.ValueOK, Problem: v.Problem}
}

// lineWriter writes a value in one line.
type lineWriter struct {
	strings.Builder
	*style
}

func (w *lineWriter) isFull() bool { return w.Len() > maxLine }

func (w *lineWriter) value(v *trace.Value) {
	switch v.Status {
	case trace.ValueOptimizedOut:
		w.WriteString("<optimized out>")
		return
	case trace.ValueUnset:
		w.WriteString("<unset>")
		return
	case trace.ValueFailed:
		w.WriteString("<" + v.Problem + ">")
		return
	}
	if w.isFull() {
		return
	}
	if v.HasText {
		w.WriteString(v.Text)
	}
	if len(v.Children) == 0 && !v.IsDeep && v.More == 0 {
		if !v.HasText {
			w.empty(v)
		}
		return
	}
	switch {
	case !v.HasText:
	case v.Shape == trace.ShapeScalar, v.Shape == trace.ShapeWrapped && (w.style == styleOfGo || v.IsDeep || len(v.Children) == 0 || v.Children[0].Role == trace.RolePointee):
		w.WriteByte(' ')
	default:
		w.WriteString(w.is)
	}
	switch v.Shape {
	case trace.ShapeWrapped:
		w.wrapped(v)
	case trace.ShapeArray:
		w.list(v, w.openArray, w.closeArray)
	case trace.ShapeAssociated:
		w.entries(v)
	default:
		w.structure(v)
	}
}

// empty writes an object without members, or an array without elements.
func (w *lineWriter) empty(v *trace.Value) {
	switch {
	case v.Shape == trace.ShapeArray:
		w.WriteString(w.openArray + w.closeArray)
	case w.hasTypes:
		w.WriteString(shortName(v.Type))
	default:
		w.WriteString(w.open + w.close)
	}
}

// wrapped writes the value that stands for the whole: the target of a pointer.
func (w *lineWriter) wrapped(v *trace.Value) {
	if v.IsDeep || len(v.Children) == 0 {
		w.WriteString("{...}")
		return
	}
	if v.HasText && v.Children[0].Role == trace.RolePointee {
		w.WriteString("-> ")
	}
	w.value(&v.Children[0])
}

// list writes elements, of consecutive equal ones only the first.
func (w *lineWriter) list(v *trace.Value, open, closing string) {
	w.WriteString(open)
	for i := 0; i < len(v.Children); {
		if i > 0 {
			w.WriteString(", ")
		}
		if w.isFull() {
			break
		}
		start := w.Len()
		w.value(&v.Children[i])
		text := w.String()[start:]
		n := 1
		for i+n < len(v.Children) && w.isSame(&v.Children[i+n], text) {
			n++
		}
		if n < repeats {
			i++
			continue
		}
		fmt.Fprintf(w, " <repeats %d times>", n)
		i += n
	}
	w.rest(v)
	w.WriteString(closing)
}

// isSame reports whether a value has a text.
func (w *lineWriter) isSame(v *trace.Value, text string) bool {
	if v.HasText && len(v.Children) == 0 && v.Status == trace.ValueOK {
		return v.Text == text
	}
	other := lineWriter{style: w.style}
	other.value(v)
	return other.String() == text
}

// rest writes that there is more, or why there is no more.
func (w *lineWriter) rest(v *trace.Value) {
	switch {
	case v.Status == trace.ValuePartial && v.Problem != "":
		if len(v.Children) > 0 {
			w.WriteString(", ")
		}
		w.WriteString("<" + v.Problem + ">")
	case v.IsDeep:
		w.WriteString("...")
	case v.More > 0:
		w.WriteString("...")
	}
}

// entries writes the entries of a map: each has a key and a value.
func (w *lineWriter) entries(v *trace.Value) {
	w.WriteString(w.openMap)
	for i := range v.Children {
		if i > 0 {
			w.WriteString(", ")
		}
		if w.isFull() {
			break
		}
		e := &v.Children[i]
		if len(e.Children) != 2 {
			w.value(e)
			continue
		}
		w.WriteString(w.openKey)
		w.value(&e.Children[0])
		w.WriteString(w.closeKey)
		w.value(&e.Children[1])
	}
	w.rest(v)
	w.WriteString(w.closeMap)
}

// structure writes an object with its members.
func (w *lineWriter) structure(v *trace.Value) {
	if w.hasTypes && len(v.Children) == 1 && v.Children[0].Role == trace.RoleVariant {
		w.variant(&v.Children[0])
		return
	}
	name := ""
	if w.hasTypes && !v.HasText && v.Role != trace.RoleVariant {
		name = shortName(v.Type)
	}
	w.WriteString(name)
	if isTuple(v.Children) {
		w.tuple(v)
		return
	}
	if name == "" {
		w.WriteString(strings.TrimLeft(w.open, " "))
	} else {
		w.WriteString(w.open)
	}
	isFirst := true
	for i := range v.Children {
		c := &v.Children[i]
		if c.Role == trace.RoleBase && hasNothing(c) {
			continue
		}
		if !isFirst {
			w.WriteString(", ")
		}
		isFirst = false
		if w.isFull() {
			break
		}
		switch {
		case c.Role == trace.RoleBase:
			w.WriteString("<" + c.Name + ">" + w.equals)
		case c.Name != "":
			w.WriteString(c.Name + w.equals)
		}
		w.value(c)
	}
	w.rest(v)
	w.WriteString(w.close)
}

// hasNothing reports whether a value has nothing to show.
func hasNothing(v *trace.Value) bool {
	if v.HasText || v.IsDeep || v.More > 0 || v.Status != trace.ValueOK {
		return false
	}
	for i := range v.Children {
		if v.Children[i].Role != trace.RoleBase || !hasNothing(&v.Children[i]) {
			return false
		}
	}
	return true
}

// variant writes a variant of a Rust enum: its name, and its members if it has some.
func (w *lineWriter) variant(v *trace.Value) {
	w.WriteString(v.Name)
	switch {
	case v.Status != trace.ValueOK && v.Status != trace.ValuePartial:
		w.value(v)
	case len(v.Children) == 0 && !v.IsDeep:
	case isTuple(v.Children):
		w.tuple(v)
	default:
		w.WriteByte(' ')
		w.structure(v)
	}
}

// tuple writes members that have numbers for names.
func (w *lineWriter) tuple(v *trace.Value) {
	w.WriteByte('(')
	for i := range v.Children {
		if i > 0 {
			w.WriteString(", ")
		}
		w.value(&v.Children[i])
	}
	w.rest(v)
	w.WriteByte(')')
}

// isTuple reports whether members are numbered, as rustc names a tuple's.
func isTuple(list []trace.Value) bool {
	for i := range list {
		if list[i].Name != fmt.Sprintf("__%d", i) {
			return false
		}
	}
	return len(list) > 0
}

// shortName returns a type's name without the namespaces around it and without its arguments. A
// tuple's is empty.
func shortName(name string) string {
	switch {
	case strings.HasPrefix(name, "("):
		return ""
	case strings.IndexAny(name, "&*[") == 0: // of a pointer with a length, or of a type of Go
		return name
	}
	if i := strings.IndexByte(name, '<'); i > 0 {
		name = name[:i]
	}
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return name
}
