// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

const (
	// valueObjects bounds the objects that the text of one variable may be made of, and
	// valueBytes its length.
	valueObjects = 4096
	valueBytes   = 1 << 14
	// valueDepth and valueElements bound what a request may ask for.
	valueDepth    = 32
	valueElements = 1 << 12
	// attributeObjects bounds the objects that the attributes of one variable may be made of.
	attributeObjects = 1 << 14
	// requestObjects and requestBytes bound the objects and the text of all variables of a request.
	requestObjects = 1 << 19
	requestBytes   = 1 << 24
)

// values describes objects by the memory of the process: no code of the process is executed. The text
// of an object is the one that repr() returns, as far as its class has none of its own.
type values struct {
	r        *reader
	depth    int
	elements int
	details  map[uint64]*details // of classes, by address
	byName   map[string]valueForm
	byFlag   []flagForm
	objects  int // that may still be read
	bytes    int // of text that may still be written
}

// newValues returns values with limits of a request.
func newValues(r *reader, depth, elements uint32) *values {
	return &values{
		r: r, depth: int(min(depth, valueDepth)), elements: int(min(elements, valueElements)), details: map[uint64]*details{},
		byName: formsByName(), byFlag: formsByFlag(), objects: requestObjects, bytes: requestBytes,
	}
}

// describe returns the object at an address as the value of a variable.
func (v *values) describe(name string, address uint64) sdk.ManagedVariable {
	out := sdk.ManagedVariable{Name: name}
	c, err := v.r.class(address)
	if err != nil {
		out.Status, out.Text = sdk.ValueUnreadable, err.Error()
		return out
	}
	out.Type = c.shortName()
	if v.objects <= 0 || v.bytes <= 0 {
		out.Text = "..." // there are too many others
		return out
	}
	w := v.write(address, v.depth, valueObjects)
	out.Text = w.String()
	if w.problem != nil {
		return sdk.ManagedVariable{Name: name, Type: out.Type, Status: sdk.ValueUnreadable, Text: w.problem.Error()}
	}
	budget := attributeObjects
	out.Children, out.More = v.children(c, address, v.depth, map[uint64]bool{}, &budget)
	return out
}

// write writes the text of an object, of most objects at most.
func (v *values) write(address uint64, depth, most int) *valueWriter {
	w := &valueWriter{values: v, left: min(most, v.objects)}
	w.object(address, depth)
	v.objects, v.bytes = v.objects-w.used, v.bytes-w.Len()
	return w
}

// children describes the attributes of an object, those that its text does not have.
func (v *values) children(c *class, address uint64, depth int, within map[uint64]bool, budget *int) (list []sdk.ManagedVariable, more uint64) {
	if depth <= 0 || within[address] || !c.is(classIsHeap) || c.is(classIsType) || v.isNamed(c) {
		return nil, 0
	}
	within[address] = true
	defer delete(within, address)
	attributes, left, err := v.attributes(c, address, v.elements)
	if err != nil {
		return nil, 0
	}
	for _, a := range attributes {
		if *budget--; *budget < 0 {
			more++
			continue
		}
		child := sdk.ManagedVariable{Name: a.name}
		inner, err := v.r.class(a.value)
		if err != nil {
			child.Status, child.Text = sdk.ValueUnreadable, err.Error()
			list = append(list, child)
			continue
		}
		child.Type = inner.shortName()
		w := v.write(a.value, depth-1, min(valueObjects, *budget))
		*budget -= w.used
		if child.Text = w.String(); w.problem != nil {
			child.Status, child.Text = sdk.ValueUnreadable, w.problem.Error()
		} else {
			child.Children, child.More = v.children(inner, a.value, depth-1, within, budget)
		}
		list = append(list, child)
	}
	return list, more + left
}

// isNamed reports whether the text of a class's objects has their attributes.
func (v *values) isNamed(c *class) bool { return v.isEnum(c) || v.isDataclass(c) }

// valueWriter writes the text of one object.
type valueWriter struct {
	*values
	strings.Builder
	left    int      // objects that may still be read
	used    int      // objects that were read
	within  []uint64 // the containers that are being written
	problem error
}

// isFull reports whether no more is to be written.
func (w *valueWriter) isFull() bool {
	return w.problem != nil || w.left <= 0 || w.Len() > valueBytes || w.r.ctx.Err() != nil
}

// object writes the object at an address. depth is how many levels of objects may lie in it.
func (w *valueWriter) object(address uint64, depth int) {
	if w.isFull() {
		w.WriteString("...")
		return
	}
	w.left--
	w.used++
	c, err := w.r.class(address)
	if err == nil {
		err = w.form(c)(w, c, address, depth)
	}
	switch {
	case err == nil:
	case len(w.within) > 0:
		w.WriteString("<unreadable>")
	case w.problem == nil:
		w.problem = err
	}
}

// valueForm writes an object of a class.
type valueForm func(w *valueWriter, c *class, address uint64, depth int) error

// formsByName are forms of classes that the interpreter and its library write in C.
func formsByName() map[string]valueForm {
	return map[string]valueForm{
		"NoneType": constant("None"), "ellipsis": constant("Ellipsis"), "NotImplementedType": constant("NotImplemented"),
		"bool": (*valueWriter).boolean, "float": (*valueWriter).float, "complex": (*valueWriter).complex,
		"bytearray": (*valueWriter).byteArray, "set": (*valueWriter).set, "frozenset": (*valueWriter).set,
		"range": (*valueWriter).rangeObject, "slice": (*valueWriter).slice, "function": (*valueWriter).function,
		"builtin_function_or_method": (*valueWriter).builtin, "method": (*valueWriter).method, "module": (*valueWriter).module,
		"generator": (*valueWriter).generator, "coroutine": (*valueWriter).generator, "async_generator": (*valueWriter).generator,
		"collections.deque": (*valueWriter).deque, "cell": (*valueWriter).cell, "mappingproxy": (*valueWriter).proxy,
		"_thread.lock": (*valueWriter).lock, "_thread.RLock": (*valueWriter).reentrantLock, "numpy.ndarray": (*valueWriter).array,
	}
}

// flagForm is the form of classes with a base that a flag names.
type flagForm struct {
	flag uint64
	form valueForm
}

// formsByFlag are forms of classes with a base among those that flags name.
func formsByFlag() []flagForm {
	return []flagForm{
		{classIsInt, (*valueWriter).integer}, {classIsStr, (*valueWriter).text}, {classIsBytes, (*valueWriter).bytes}, {classIsList, (*valueWriter).list},
		{classIsTuple, (*valueWriter).tuple}, {classIsDict, (*valueWriter).dict}, {classIsException, (*valueWriter).exception}, {classIsType, (*valueWriter).class},
	}
}

// form is the form of a class: its own, else that of a base.
func (v *values) form(c *class) valueForm {
	if c.is(classIsHeap) && v.isEnum(c) {
		return (*valueWriter).enum
	}
	if c.is(classIsHeap) && v.isDataclass(c) {
		return (*valueWriter).dataclass
	}
	for base, n := c, 0; base != nil && n < maxBases; base, n = v.base(base), n+1 {
		if !base.is(classIsHeap) || strings.Contains(base.name, ".") {
			if form := v.byName[base.name]; form != nil {
				return form
			}
		}
	}
	for _, f := range v.byFlag {
		if c.is(f.flag) {
			return f.form
		}
	}
	return (*valueWriter).plain
}

func constant(text string) valueForm {
	return func(w *valueWriter, _ *class, _ uint64, _ int) error {
		w.WriteString(text)
		return nil
	}
}

// plain writes an object that has no form of its own.
func (w *valueWriter) plain(c *class, address uint64, _ int) error {
	fmt.Fprintf(w, "<%s object at %#x>", w.qualified(c), address)
	return nil
}

// derived writes what fn writes, behind the name of the class where that is a derived one.
func (w *valueWriter) derived(c *class, name string, fn func() error) error {
	if c.name == name {
		return fn()
	}
	w.WriteString(c.shortName() + "(")
	err := fn()
	w.WriteByte(')')
	return err
}

func (w *valueWriter) boolean(_ *class, address uint64, _ int) error {
	n, err := w.r.smallInt(address)
	if err == nil && n > 1 {
		err = fmt.Errorf("bool at %#x is %d, expected 0 or 1", address, n)
	}
	if err == nil {
		w.WriteString([...]string{"False", "True"}[n])
	}
	return err
}

func (w *valueWriter) integer(c *class, address uint64, _ int) error {
	return w.derived(c, "int", func() error {
		n, err := w.r.integer(address)
		switch {
		case err != nil:
		case n == nil:
			fmt.Fprintf(w, "<int of more than %d bits>", maxIntBytes/4*30)
		default:
			w.WriteString(n.String())
		}
		return err
	})
}

func (w *valueWriter) float(c *class, address uint64, _ int) error {
	return w.derived(c, "float", func() error {
		bits, err := w.r.pointer(address, w.r.layout.number.floatValue)
		if err == nil {
			w.WriteString(floatText(bits, true))
		}
		return err
	})
}

func (w *valueWriter) complex(c *class, address uint64, _ int) error {
	return w.derived(c, "complex", func() error {
		realPart, err := w.r.pointer(address, w.r.layout.number.complexValue)
		if err != nil {
			return err
		}
		imaginary, err := w.r.pointer(address, w.r.layout.number.complexValue+8)
		if err != nil {
			return err
		}
		w.WriteString(complexText(realPart, imaginary))
		return nil
	})
}

func (w *valueWriter) text(c *class, address uint64, _ int) error {
	return w.derived(c, "str", func() error {
		runes, left, err := w.runes(address, w.elements)
		if err != nil {
			return err
		}
		w.quoted(runes, left)
		return nil
	})
}

// quoted writes text as the language does; left: there is more of it.
func (w *valueWriter) quoted(runes []rune, left uint64) {
	w.WriteString(quotedText(runes))
	if left > 0 {
		w.WriteString("...")
	}
}

func (w *valueWriter) bytes(c *class, address uint64, _ int) error {
	return w.derived(c, "bytes", func() error {
		size, err := w.r.count(address, maxItems)
		if err != nil {
			return err
		}
		return w.quotedBytes(address+w.place(w.r.layout.sequence.bytesData), size)
	})
}

// quotedBytes writes bytes at an address as the language does.
func (w *valueWriter) quotedBytes(address, size uint64) error {
	kept := min(size, uint64(w.elements)) //nolint:gosec // not below 0
	data, err := w.r.mem.Bytes(address, kept)
	if err != nil {
		return err
	}
	w.WriteString("b" + quotedData(data))
	if kept < size {
		w.WriteString("...")
	}
	return nil
}

func (w *valueWriter) byteArray(c *class, address uint64, _ int) error {
	size, err := w.r.count(address, maxItems)
	if err != nil {
		return err
	}
	start := uint64(0)
	if size > 0 {
		if start, err = w.r.pointer(address, w.r.layout.sequence.byteArrayData); err != nil {
			return err
		}
	}
	w.WriteString(c.shortName() + "(")
	err = w.quotedBytes(start, size)
	w.WriteByte(')')
	return err
}

// enter begins a container: false where its parts are not to be written.
func (w *valueWriter) enter(address uint64, depth int) bool {
	if depth <= 0 || slices.Contains(w.within, address) {
		return false
	}
	w.within = append(w.within, address)
	return true
}

func (w *valueWriter) leave() { w.within = w.within[:len(w.within)-1] }

// parts writes the objects at addresses, each behind a comma; more: there are others.
func (w *valueWriter) parts(list []uint64, depth int, isMore bool) {
	w.prefetch(list)
	for i, address := range list {
		if i > 0 {
			w.WriteString(", ")
		}
		if w.isFull() {
			isMore = true
			break
		}
		if address == 0 {
			w.WriteString("<NULL>")
			continue
		}
		w.object(address, depth-1)
	}
	if isMore {
		if len(list) > 0 && !strings.HasSuffix(w.String(), ", ") {
			w.WriteString(", ")
		}
		w.WriteString("...")
	}
}

// pointers reads the first elements of an array of pointers.
func (w *valueWriter) pointers(address, count uint64) (list []uint64, isMore bool, err error) {
	kept := min(count, uint64(w.elements)) //nolint:gosec // not below 0
	data, err := w.r.mem.Bytes(address, 8*kept)
	if err != nil {
		return nil, false, err
	}
	for ; len(data) >= 8; data = data[8:] {
		list = append(list, w.r.mem.Number(data[:8]))
	}
	return list, kept < count, nil
}

func (w *valueWriter) list(c *class, address uint64, depth int) error {
	return w.derived(c, "list", func() error {
		count, err := w.r.count(address, maxItems)
		if err != nil {
			return err
		}
		items := uint64(0)
		if count > 0 {
			if items, err = w.r.pointer(address, w.r.layout.sequence.listItems); err != nil {
				return err
			}
		}
		return w.array1("[", "]", "[...]", address, items, count, depth)
	})
}

// array1 writes an array of objects between brackets.
func (w *valueWriter) array1(open, closing, cut string, address, items, count uint64, depth int) error {
	if count > 0 && !w.enter(address, depth) {
		w.WriteString(cut)
		return nil
	}
	w.WriteString(open)
	if count > 0 {
		defer w.leave()
		list, isMore, err := w.pointers(items, count)
		if err != nil {
			return err
		}
		w.parts(list, depth, isMore)
	}
	w.WriteString(closing)
	return nil
}

func (w *valueWriter) tuple(c *class, address uint64, depth int) error {
	count, err := w.r.count(address, maxItems)
	if err != nil {
		return err
	}
	if names := w.fieldNames(c, count); names != nil {
		return w.namedTuple(c, names, address, depth)
	}
	closing := ")"
	if count == 1 {
		closing = ",)"
	}
	return w.derived(c, "tuple", func() error {
		return w.array1("(", closing, "(...)", address, address+w.place(w.r.layout.sequence.tupleItems), count, depth)
	})
}

// namedTuple writes a tuple whose elements have names.
func (w *valueWriter) namedTuple(c *class, names []string, address uint64, depth int) error {
	list, isMore, err := w.pointers(address+w.place(w.r.layout.sequence.tupleItems), uint64(len(names)))
	if err != nil {
		return err
	}
	w.WriteString(c.shortName() + "(")
	defer w.WriteByte(')')
	if !w.enter(address, depth) {
		w.WriteString("...")
		return nil
	}
	defer w.leave()
	w.prefetch(list)
	for i, a := range list {
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(names[i] + "=")
		w.object(a, depth-1)
	}
	if isMore {
		w.WriteString(", ...")
	}
	return nil
}

func (w *valueWriter) dict(c *class, address uint64, depth int) error {
	return w.derived(c, "dict", func() error {
		entries, left, err := w.entries(address, w.elements)
		if err != nil {
			return err
		}
		return w.pairs(address, entries, left > 0, depth)
	})
}

// pairs writes entries of a dictionary.
func (w *valueWriter) pairs(address uint64, entries []entry, isMore bool, depth int) error {
	if len(entries) > 0 && !w.enter(address, depth) {
		w.WriteString("{...}")
		return nil
	}
	if len(entries) > 0 {
		defer w.leave()
	}
	w.WriteByte('{')
	var objects []uint64
	for _, e := range entries {
		objects = append(objects, e.key, e.value)
	}
	w.prefetch(objects)
	for i, e := range entries {
		if i > 0 {
			w.WriteString(", ")
		}
		if w.isFull() {
			isMore = true
			break
		}
		w.object(e.key, depth-1)
		w.WriteString(": ")
		w.object(e.value, depth-1)
		if i == len(entries)-1 && isMore {
			w.WriteString(", ")
		}
	}
	if isMore {
		w.WriteString("...")
	}
	w.WriteByte('}')
	return nil
}

func (w *valueWriter) proxy(_ *class, address uint64, depth int) error {
	inner, err := w.r.pointer(address, w.r.layout.object.size)
	if err != nil {
		return err
	}
	w.WriteString("mappingproxy(")
	w.object(inner, depth)
	w.WriteByte(')')
	return nil
}

func (w *valueWriter) set(c *class, address uint64, depth int) error {
	list, left, err := w.setElements(address)
	if err != nil {
		return err
	}
	name := c.shortName()
	if len(list) == 0 {
		w.WriteString(name + "()")
		return nil
	}
	open, closing := name+"({", "})"
	if c.name == "set" {
		open, closing = "{", "}"
	}
	if !w.enter(address, depth) {
		w.WriteString(name + "(...)")
		return nil
	}
	defer w.leave()
	w.WriteString(open)
	w.parts(list, depth, left)
	w.WriteString(closing)
	return nil
}

// members writes pointers of an object, each a value.
func (w *valueWriter) members(list []uint64, depth int) {
	for i, a := range list {
		if i > 0 {
			w.WriteString(", ")
		}
		w.object(a, depth)
	}
}

func (w *valueWriter) rangeObject(_ *class, address uint64, depth int) error {
	list, err := w.pointers3(address)
	if err != nil {
		return err
	}
	if step, err := w.r.smallInt(list[2]); err == nil && step == 1 {
		list = list[:2]
	}
	w.WriteString("range(")
	w.members(list, depth)
	w.WriteByte(')')
	return nil
}

// pointers3 reads the three pointers behind the header of an object.
func (w *valueWriter) pointers3(address uint64) (list []uint64, err error) {
	for i := range offset(3) {
		p, err := w.r.pointer(address, w.r.layout.object.size+8*i)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (w *valueWriter) slice(_ *class, address uint64, depth int) error {
	list, err := w.pointers3(address)
	if err != nil {
		return err
	}
	w.WriteString("slice(")
	w.members(list, depth)
	w.WriteByte(')')
	return nil
}

// namedBy writes an object with a name that a text object has.
func (w *valueWriter) namedBy(kind string, address uint64, member offset) error {
	p, err := w.r.pointer(address, member)
	if err != nil {
		return err
	}
	name, err := w.r.text(p, maxName)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "<%s %s at %#x>", kind, name, address)
	return nil
}

func (w *valueWriter) function(_ *class, address uint64, _ int) error {
	return w.namedBy("function", address, w.r.layout.other.functionQualifiedName)
}

func (w *valueWriter) generator(c *class, address uint64, _ int) error {
	return w.namedBy(c.shortName()+" object", address, w.r.layout.generator.qualifiedName)
}

func (w *valueWriter) builtin(_ *class, address uint64, _ int) error {
	method, err := w.r.pointer(address, w.r.layout.other.builtinMethod)
	if err != nil {
		return err
	}
	name, err := w.methodName(method)
	if err != nil {
		return err
	}
	self, err := w.r.pointer(address, w.r.layout.other.builtinSelf)
	if err != nil {
		return err
	}
	if self == 0 {
		fmt.Fprintf(w, "<built-in function %s>", name)
		return nil
	}
	c, err := w.r.class(self)
	if err != nil {
		return err
	}
	if c.name == "module" {
		fmt.Fprintf(w, "<built-in function %s>", name)
		return nil
	}
	fmt.Fprintf(w, "<built-in method %s of %s object at %#x>", name, c.name, self)
	return nil
}

func (w *valueWriter) method(_ *class, address uint64, depth int) error {
	function, err := w.r.pointer(address, w.r.layout.other.methodFunction)
	if err != nil {
		return err
	}
	self, err := w.r.pointer(address, w.r.layout.other.methodSelf)
	if err != nil {
		return err
	}
	c, err := w.r.class(function)
	if err != nil {
		return err
	}
	name := "?"
	if c.name == "function" {
		p, err := w.r.pointer(function, w.r.layout.other.functionQualifiedName)
		if err != nil {
			return err
		}
		if name, err = w.r.text(p, maxName); err != nil {
			return err
		}
	}
	w.WriteString("<bound method " + name + " of ")
	w.object(self, depth-1)
	w.WriteByte('>')
	return nil
}

func (w *valueWriter) module(_ *class, address uint64, _ int) error {
	dict, err := w.r.pointer(address, w.r.layout.other.moduleDict)
	if err != nil {
		return err
	}
	w.WriteString("<module " + w.quotedEntry(dict, "__name__", "'?'"))
	if file := w.quotedEntry(dict, "__file__", ""); file != "" {
		w.WriteString(" from " + file)
	}
	w.WriteByte('>')
	return nil
}

// quotedEntry is the text that a dictionary has for a key, quoted.
func (w *valueWriter) quotedEntry(dict uint64, key, none string) string {
	if value, err := w.r.lookup(dict, key); err == nil {
		if text, err := w.r.text(value, maxName); err == nil {
			return quotedText([]rune(text))
		}
	}
	return none
}

func (w *valueWriter) class(_ *class, address uint64, _ int) error {
	c := w.r.classAt(address)
	if c.err != nil {
		return c.err
	}
	if meta, err := w.r.class(address); err == nil && w.hasBase(meta, "EnumMeta", "EnumType") {
		kind := "enum"
		if w.r.layout.minor >= 11 && w.hasBase(c, "Flag") {
			kind = "flag"
		}
		w.WriteString("<" + kind + " '" + c.shortName() + "'>")
		return nil
	}
	w.WriteString("<class '" + w.qualified(c) + "'>")
	return nil
}

func (w *valueWriter) exception(c *class, address uint64, depth int) error {
	arguments, err := w.r.pointer(address, w.r.layout.exception.arguments)
	if err != nil {
		return err
	}
	w.WriteString(c.shortName())
	if arguments == 0 {
		w.WriteString("()")
		return nil
	}
	if a, err := w.r.class(arguments); err != nil || a.name != "tuple" {
		return fmt.Errorf("the arguments of the exception at %#x: expected a tuple", address)
	}
	count, err := w.r.count(arguments, maxItems)
	if err != nil {
		return err
	}
	return w.array1("(", ")", "(...)", arguments, arguments+w.place(w.r.layout.sequence.tupleItems), count, depth)
}

func (w *valueWriter) cell(_ *class, address uint64, depth int) error {
	inner, err := w.r.pointer(address, w.r.layout.other.cellValue)
	if err != nil {
		return err
	}
	if inner == 0 {
		fmt.Fprintf(w, "<cell at %#x: empty>", address)
		return nil
	}
	c, err := w.r.class(inner)
	if err == nil {
		fmt.Fprintf(w, "<cell at %#x: %s object at %#x>", address, c.name, inner)
	}
	return err
}

// enum writes a member of an enumeration.
func (w *valueWriter) enum(c *class, address uint64, depth int) error {
	attributes, _, err := w.attributes(c, address, valueElements)
	if err != nil {
		return err
	}
	name, value := uint64(0), uint64(0)
	for _, a := range attributes {
		switch a.name {
		case "_name_":
			name = a.value
		case "_value_":
			value = a.value
		}
	}
	text, err := w.r.text(name, maxName)
	if err != nil || value == 0 {
		return w.plain(c, address, depth)
	}
	w.WriteString("<" + c.shortName() + "." + text + ": ")
	w.object(value, depth-1)
	w.WriteByte('>')
	return nil
}

// dataclass writes an object of a data class by its fields.
func (w *valueWriter) dataclass(c *class, address uint64, depth int) error {
	fields := w.fields(c)
	attributes, _, err := w.attributes(c, address, valueElements)
	if err != nil {
		return err
	}
	w.WriteString(w.qualifiedName(c) + "(")
	defer w.WriteByte(')')
	if !w.enter(address, depth) {
		w.WriteString("...")
		return nil
	}
	defer w.leave()
	written := 0
	for _, field := range fields {
		i := slices.IndexFunc(attributes, func(a attribute) bool { return a.name == field })
		if i < 0 {
			continue
		}
		if written > 0 {
			w.WriteString(", ")
		}
		if written == w.elements || w.isFull() {
			w.WriteString("...")
			break
		}
		w.WriteString(field + "=")
		w.object(attributes[i].value, depth-1)
		written++
	}
	return nil
}

// array writes the shape of an array of numpy, and the type of its elements.
func (w *valueWriter) array(_ *class, address uint64, _ int) error {
	base := w.r.layout.object.size
	count, err := w.r.uint(address, base+8, 4)
	if err != nil {
		return err
	}
	dimensions, err := w.r.pointer(address, base+16)
	if err != nil {
		return err
	}
	descriptor, err := w.r.pointer(address, base+40)
	if err != nil {
		return err
	}
	if count > 64 {
		return fmt.Errorf("the array at %#x has %d dimensions: expected 64 at most", address, count)
	}
	var shape []string
	for i := range count {
		n, err := w.r.mem.Uint(dimensions+8*i, 8)
		if err != nil {
			return err
		}
		shape = append(shape, strconv.FormatUint(n, 10))
	}
	if count == 1 {
		shape = append(shape, "")
	}
	fmt.Fprintf(w, "<array of shape (%s), dtype %s>", strings.TrimSuffix(strings.Join(shape, ", "), " "), w.elementType(descriptor))
	return nil
}

// elementType is the name of the type that a descriptor of numpy has for scalars.
func (w *valueWriter) elementType(descriptor uint64) string {
	if p, err := w.r.pointer(descriptor, w.r.layout.object.size); err == nil {
		if c := w.r.classAt(p); c.err == nil {
			return c.shortName()
		}
	}
	return "?"
}
