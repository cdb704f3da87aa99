// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// This file finds the exception that a thread has thrown and not handled: an isolate has it from
// when it is thrown, and until then a message about it has it, where V8 ends the process because
// nothing will catch it.

// The indices of an isolate's addresses of its members.
const (
	addressExit      = 1 // of the frame pointer of the frame that left JavaScript last
	addressException = 4
)

const (
	// maxIsolate bounds the bytes of an isolate.
	maxIsolate = 1 << 20
	// blockHandles are the handles of a block of them.
	blockHandles = 1022
	// maxSymbols bounds the properties of an error among which its frames are looked for.
	maxSymbols = 4
	// maxSites bounds the words of an error's stack.
	maxSites = 1 << 12
	// maxPrototypes bounds the prototypes among which a constructor is looked for.
	maxPrototypes = 1 << 4
)

// abortPrefix begins the name of the function that ends the process at an exception that nothing
// will catch.
const abortPrefix = "_ZN2v88internal7Isolate20CreateMessageOrAbort"

// exception returns the exception that a thread has thrown and not handled; nil for none, and where
// it cannot be read.
func (c *call) exception(s *sdk.NativeStack) *sdk.ManagedException {
	isolate := c.isolateOf(s)
	if isolate == 0 {
		return nil
	}
	if address, ok := c.memberOf(isolate, addressException); ok {
		if w, err := c.Pointer(address); err == nil && w != 0 { // else it was never set
			if e := c.thrown(w); e != nil {
				return e
			}
		}
	}
	for i := range s.Frames {
		if strings.HasPrefix(s.Frames[i].Function, abortPrefix) {
			return c.announced(isolate)
		}
	}
	return nil
}

// isolateOf returns the isolate that a stack belongs to, which knows its frame that left JavaScript
// last; 0 for none.
func (c *call) isolateOf(s *sdk.NativeStack) uint64 {
	if c.exits == nil {
		c.exits = map[uint64]uint64{}
		for _, isolate := range c.isolates {
			if address, ok := c.memberOf(isolate, addressExit); ok {
				if fp, err := c.Pointer(address); err == nil && fp != 0 {
					c.exits[fp] = isolate
				}
			}
		}
	}
	for i := range s.Frames {
		if f := &s.Frames[i]; f.HasCFA && f.CFA > frameHead && c.exits[f.CFA-frameHead] != 0 {
			return c.exits[f.CFA-frameHead]
		}
	}
	return 0
}

// memberOf returns the address of a member of an isolate, which it has itself.
func (c *call) memberOf(isolate, index uint64) (uint64, bool) {
	if c.places.addresses == 0 {
		return 0, false
	}
	address, err := c.Pointer(isolate + c.places.addresses + index*c.PointerSize())
	return address, err == nil && address >= isolate && address-isolate < maxIsolate && address%c.PointerSize() == 0
}

// announced returns the exception of the newest message that a handle leads to, in the newest block
// of handles.
func (c *call) announced(isolate uint64) *sdk.ManagedException {
	if c.places.handles == 0 {
		return nil
	}
	next, err := c.Pointer(isolate + c.places.handles)
	if err != nil {
		return nil
	}
	limit, err := c.Pointer(isolate + c.places.handles + c.PointerSize())
	start := limit - blockHandles*c.PointerSize()
	if err != nil || next > limit || next < start || start > limit {
		return nil
	}
	list := c.handles(start, next)
	for i := len(list) - 1; i >= 0; i-- {
		if !c.isType(list[i], typeMessage) {
			continue
		}
		w, err := c.Pointer(uint64(list[i]) + c.offset(messageType) + c.PointerSize())
		if err != nil {
			return nil
		}
		return c.thrown(w)
	}
	return nil
}

// handles returns the objects that handles lead to, and reads their maps in a few requests.
func (c *call) handles(start, end uint64) (list []object) {
	b, err := c.Bytes(start, end-start)
	if err != nil {
		return nil
	}
	var places []uint64
	for size := int(c.PointerSize()); len(b) >= size; b = b[size:] { //nolint:gosec // 8
		if o, ok := objectOf(c.Number(b[:size])); ok {
			list, places = append(list, o), append(places, uint64(o))
		}
	}
	for range 2 { // the objects, then their maps
		c.Prefetch(places, frameWords)
		for i := range places {
			w, _ := c.Pointer(places[i])
			o, _ := objectOf(w)
			places[i] = uint64(o)
		}
	}
	return list
}

// thrown returns the exception that a word is; nil where it is none, as between two of them.
func (c *call) thrown(w uint64) *sdk.ManagedException {
	if n, ok := c.smi(w); ok {
		return &sdk.ManagedException{Type: "number", Text: strconv.FormatInt(n, 10)}
	}
	o, ok := objectOf(w)
	if !ok {
		return nil
	}
	if c.isString(o) {
		text, err := c.text(o)
		if err != nil {
			return nil
		}
		return &sdk.ManagedException{Type: "string", Text: text}
	}
	m, err := c.mapOf(o)
	if err != nil {
		return nil
	}
	name := c.constructorOf(m)
	if name == "" {
		return nil
	}
	e := &sdk.ManagedException{Type: name}
	if value, ok := c.propertyOf(o, c.isText("message")); ok && c.isString(value) {
		e.Text, _ = c.text(value)
	}
	e.Frames = c.tracebackOf(o)
	return e
}

// constructorOf returns the name of the constructor of the objects of a map, as programs read it; ""
// for none.
func (c *call) constructorOf(m object) string {
	for range maxPrototypes {
		w, err := c.word(m, mapPrototype)
		prototype, ok := objectOf(w)
		if err != nil || !ok {
			return ""
		}
		if fn, ok := c.propertyOf(prototype, c.isText("constructor")); ok && c.isBetween(fn, typeFunction, typeFunctionLast) {
			f, err := c.nameOfFunction(fn)
			if err != nil || f.name == "<anonymous>" {
				return ""
			}
			return f.name
		}
		if m, err = c.mapOf(prototype); err != nil {
			return ""
		}
	}
	return ""
}

// nameOfFunction reads a function, with the name that it has itself.
func (c *call) nameOfFunction(fn object) (*function, error) {
	shared, err := c.sharedOf(fn)
	if err != nil {
		return nil, err
	}
	f, err := c.functionOf(shared)
	if err != nil {
		return nil, err
	}
	name, err := c.ownName(fn)
	if err != nil {
		return nil, err
	}
	if name != "" {
		named := *f
		named.name = name
		return &named, nil
	}
	return f, nil
}

// tracebackOf returns the frames that an error has, innermost first, under a symbol without a name.
func (c *call) tracebackOf(o object) []sdk.ManagedFrame {
	for skipped := range maxSymbols {
		seen := 0
		value, ok := c.propertyOf(o, func(key object) bool {
			if c.isType(key, typeSymbol) {
				seen++
			}
			return seen > skipped
		})
		if seen <= skipped {
			break
		}
		if !ok {
			continue
		}
		if frames := c.sites(value); len(frames) > 0 {
			return frames
		}
	}
	return nil
}

// propertyOf returns the value of an object's own property.
func (c *call) propertyOf(o object, isKey func(object) bool) (object, bool) {
	m, err := c.mapOf(o)
	if err != nil {
		return 0, false
	}
	p, err := c.property(m, isKey)
	if err != nil {
		return c.tableValue(o, isKey)
	}
	value, err := c.valueOf(o, p)
	return value, err == nil && value != 0
}

// The words of a table of properties: numbers, of which the third is how many properties have a
// place, others, then the key, the value and the details of each.
const (
	tableNumbers = 3
	tableWords   = 3
	maxOthers    = 4
)

// tableValue returns the value of a property of an object that has them in a table.
func (c *call) tableValue(o object, isKey func(object) bool) (object, bool) {
	w, err := c.word(o, objectProperties)
	table, ok := objectOf(w)
	if err != nil || !ok {
		return 0, false
	}
	words, err := c.words(table, tableWords*maxDescriptors*4)
	if err != nil || len(words) < tableNumbers {
		return 0, false
	}
	capacity, ok := c.smi(words[tableNumbers-1])
	others := int64(len(words)) - tableNumbers - tableWords*capacity
	if !ok || capacity < 0 || others < 0 || others > maxOthers {
		return 0, false
	}
	for list := words[tableNumbers+others:]; len(list) >= tableWords; list = list[tableWords:] {
		if key, ok := objectOf(list[0]); ok && isKey(key) {
			return objectOf(list[1])
		}
	}
	return 0, false
}

// sites returns the frames of an error's stack, innermost first; none where V8 has made text of it.
func (c *call) sites(stack object) (frames []sdk.ManagedFrame) {
	if c.isType(stack, typeErrorStack) {
		w, err := c.Pointer(uint64(stack) + c.PointerSize())
		o, ok := objectOf(w)
		if err != nil || !ok {
			return nil
		}
		stack = o
	}
	if !c.isType(stack, typeFixedArray) {
		return nil
	}
	words, err := c.words(stack, maxSites)
	if err != nil {
		return nil
	}
	step := max(c.values[siteWords], 1)
	for i := int64(0); i+step <= int64(len(words)); i += step {
		place := uint64(stack) + c.offset(arrayData) + uint64(i)*c.PointerSize() //nolint:gosec // an index
		if c.values[siteWords] == 0 {
			o, ok := objectOf(words[i])
			if !ok || !c.isType(o, typeSite) {
				return frames
			}
			place = uint64(o)
		}
		frame, err := c.site(place)
		if err != nil {
			return frames
		}
		frames = append(frames, frame)
	}
	return frames
}

// errNoFunction is returned for a frame of an error's stack that is of no function.
var errNoFunction = errors.New("expected a function")

// site reads a frame of an error's stack. Where its place cannot be read it has no line.
func (c *call) site(address uint64) (frame sdk.ManagedFrame, err error) {
	w, err := c.Pointer(address + c.offset(siteFunction))
	if err != nil {
		return frame, err
	}
	fn, ok := objectOf(w)
	if !ok || !c.isBetween(fn, typeFunction, typeFunctionLast) {
		return frame, errNoFunction
	}
	f, err := c.nameOfFunction(fn)
	if err != nil {
		return frame, err
	}
	frame.Function = f.name
	if f.script == nil {
		frame.Kind = sdk.Builtin
		return frame, nil
	}
	frame.File = f.script.name
	if at, err := c.sitePlace(address, f); err == nil {
		frame.Line, frame.Column = at.line, at.column
	}
	return frame, nil
}

// sitePlace returns the place of a frame of an error's stack.
func (c *call) sitePlace(address uint64, f *function) (place, error) {
	flags, err := c.Pointer(address + c.offset(siteFlags))
	if err != nil {
		return place{}, err
	}
	bits, ok := c.smi(flags)
	w, err := c.Pointer(address + c.offset(siteOffset))
	offset, isNumber := c.smi(w)
	if err != nil || !ok || !isNumber {
		return place{}, errors.Join(err, errNoPositions)
	}
	if bits>>c.offset(siteHasPosition)&1 != 0 {
		return c.placeInScript(f.script, offset)
	}
	if w, err = c.Pointer(address + c.offset(siteCode)); err != nil {
		return place{}, err
	}
	code, ok := objectOf(w)
	if ok && !c.isType(code, typeBytecodeArray) && !c.isType(code, typeCode) { // it stands for one
		w, err = c.Pointer(uint64(code) + c.PointerSize())
		code, ok = objectOf(w)
	}
	if err == nil && ok && c.isType(code, typeCode) {
		code, offset, err = c.baselineSite(code, offset)
	}
	if err != nil || !ok || code != f.bytecode || !c.isType(code, typeBytecodeArray) {
		return place{}, errors.Join(err, errNoPositions)
	}
	return c.placeInBytecode(f.script, code, offset)
}

// baselineSite returns the bytecode of baseline code, and the offset in it of a return address.
func (c *call) baselineSite(code object, offset int64) (object, int64, error) {
	flags, err := c.Uint(uint64(code)+c.offset(codeFlags), 4)
	if err != nil {
		return 0, 0, err
	}
	if flags&c.offset(codeKindMask) != c.offset(kindBaseline) || offset < 0 {
		return 0, 0, errNoPositions
	}
	return c.bytecodeOffset(&machineCode{object: code}, uint64(offset))
}
