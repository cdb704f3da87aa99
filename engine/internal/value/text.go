// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"fmt"
	"strconv"
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
	if v.HasText && v.Status == trace.ValueOK && len(v.Children) == 0 && !v.IsDeep && v.More == 0 && len(v.Text) <= maxLine {
		return v.Text
	}
	return string(AppendLine(nil, v, language))
}

// AppendLine appends the Line of a value.
func AppendLine(dst []byte, v *trace.Value, language uint64) []byte {
	w := lineWriter{text: dst, start: len(dst), style: styleOf(language)}
	w.value(v)
	if w.isFull() {
		return append(w.text[:w.start+maxLine], "..."...)
	}
	return w.text
}

// Short returns the value with its Line as its text, and without its parts: enough where only
// that will be printed.
func Short(v *trace.Value, language uint64) trace.Value {
	return trace.Value{Name: v.Name, Type: v.Type, Text: Line(v, language), HasText: true, Status: trace.ValueOK, Problem: v.Problem}
}

// lineWriter writes a value in one line.
type lineWriter struct {
	text  []byte
	start int // of the line in text
	*style
}

// put appends a text.
func (w *lineWriter) put(s string) { w.text = append(w.text, s...) }

func (w *lineWriter) isFull() bool { return len(w.text)-w.start > maxLine }

func (w *lineWriter) value(v *trace.Value) {
	switch v.Status {
	case trace.ValueOptimizedOut:
		w.put("<optimized out>")
		return
	case trace.ValueUnset:
		w.put("<unset>")
		return
	case trace.ValueFailed:
		w.put("<" + v.Problem + ">")
		return
	}
	if w.isFull() {
		return
	}
	if v.HasText {
		w.put(v.Text)
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
		w.put(" ")
	default:
		w.put(w.is)
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
		w.put(w.openArray + w.closeArray)
	case w.hasTypes:
		w.put(shortName(v.Type))
	default:
		w.put(w.open + w.close)
	}
}

// wrapped writes the value that stands for the whole: the target of a pointer.
func (w *lineWriter) wrapped(v *trace.Value) {
	if v.IsDeep || len(v.Children) == 0 {
		w.put("{...}")
		return
	}
	if v.HasText && v.Children[0].Role == trace.RolePointee {
		w.put("-> ")
	}
	w.value(&v.Children[0])
}

// list writes elements, of consecutive equal ones only the first.
func (w *lineWriter) list(v *trace.Value, open, closing string) {
	w.put(open)
	for i := 0; i < len(v.Children); {
		if i > 0 {
			w.put(", ")
		}
		if w.isFull() {
			break
		}
		start := len(w.text)
		w.value(&v.Children[i])
		end, n := len(w.text), 1
		for i+n < len(v.Children) && w.isSame(&v.Children[i+n], start, end) {
			n++
		}
		if n < repeats {
			i++
			continue
		}
		w.text = fmt.Appendf(w.text, " <repeats %d times>", n)
		i += n
	}
	w.rest(v)
	w.put(closing)
}

// isSame reports whether a value has the text from start to end.
func (w *lineWriter) isSame(v *trace.Value, start, end int) bool {
	if v.HasText && len(v.Children) == 0 && v.Status == trace.ValueOK {
		return v.Text == string(w.text[start:end])
	}
	other := lineWriter{text: w.text[:end], start: end, style: w.style} // behind the line, which goes on over it
	other.value(v)
	return bytes.Equal(other.text[end:], w.text[start:end])
}

// rest writes that there is more, or why there is no more.
func (w *lineWriter) rest(v *trace.Value) {
	switch {
	case v.Status == trace.ValuePartial && v.Problem != "":
		if len(v.Children) > 0 {
			w.put(", ")
		}
		w.put("<" + v.Problem + ">")
	case v.IsDeep:
		w.put("...")
	case v.More > 0:
		w.put("...")
	}
}

// entries writes the entries of a map: each has a key and a value.
func (w *lineWriter) entries(v *trace.Value) {
	w.put(w.openMap)
	for i := range v.Children {
		if i > 0 {
			w.put(", ")
		}
		if w.isFull() {
			break
		}
		e := &v.Children[i]
		if len(e.Children) != 2 {
			w.value(e)
			continue
		}
		w.put(w.openKey)
		w.value(&e.Children[0])
		w.put(w.closeKey)
		w.value(&e.Children[1])
	}
	w.rest(v)
	w.put(w.closeMap)
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
	w.put(name)
	if isTuple(v.Children) {
		w.tuple(v)
		return
	}
	if name == "" {
		w.put(strings.TrimLeft(w.open, " "))
	} else {
		w.put(w.open)
	}
	isFirst := true
	for i := range v.Children {
		c := &v.Children[i]
		if c.Role == trace.RoleBase && hasNothing(c) {
			continue
		}
		if !isFirst {
			w.put(", ")
		}
		isFirst = false
		if w.isFull() {
			break
		}
		switch {
		case c.Role == trace.RoleBase:
			w.put("<" + c.Name + ">" + w.equals)
		case c.Name != "":
			w.put(c.Name + w.equals)
		}
		w.value(c)
	}
	w.rest(v)
	w.put(w.close)
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
	w.put(v.Name)
	switch {
	case v.Status != trace.ValueOK && v.Status != trace.ValuePartial:
		w.value(v)
	case len(v.Children) == 0 && !v.IsDeep:
	case isTuple(v.Children):
		w.tuple(v)
	default:
		w.put(" ")
		w.structure(v)
	}
}

// tuple writes members that have numbers for names.
func (w *lineWriter) tuple(v *trace.Value) {
	w.put("(")
	for i := range v.Children {
		if i > 0 {
			w.put(", ")
		}
		w.value(&v.Children[i])
	}
	w.rest(v)
	w.put(")")
}

// isTuple reports whether members are numbered, as rustc names a tuple's.
func isTuple(list []trace.Value) bool {
	for i := range list {
		number, ok := strings.CutPrefix(list[i].Name, "__")
		if !ok || number != strconv.Itoa(i) {
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
