// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// The kinds of the places of local variables, from 3.11 on.
const (
	localIsHidden = 1 << 4 // of a comprehension that has no frame of its own
	localIsLocal  = 1 << 5
	localIsCell   = 1 << 6
	localIsFree   = 1 << 7
)

// The flags of code objects.
const (
	codeHasPlaces = 1 << 0 // its variables have places; else they are in a dictionary
	codeHasMore   = 1 << 2 // *args
	codeHasNamed  = 1 << 3 // **kwargs
)

// maxLocals bounds the variables of a frame.
const maxLocals = 1 << 12

// local is a variable of a frame.
type local struct {
	name    string
	isParam bool
	isCell  bool
	value   uint64 // address; 0: it has none yet
}

// locals describes the variables of a frame, in the order of its code.
func (v *values) locals(f *frame) []sdk.ManagedVariable {
	if f.resolved == nil || f.resolved.isShim {
		return nil
	}
	list, err := v.placed(f)
	if err == nil && f.resolved.flags&codeHasPlaces == 0 {
		var named []local
		named, err = v.named(f)
		list = append(list, named...)
	}
	if err != nil {
		return []sdk.ManagedVariable{{Name: "?", Status: sdk.ValueUnreadable, Text: err.Error()}}
	}
	objects := make([]uint64, 0, len(list))
	for _, l := range list {
		objects = append(objects, l.value)
	}
	v.prefetch(objects)
	out := make([]sdk.ManagedVariable, 0, len(list))
	for _, l := range list {
		out = append(out, v.variable(l))
	}
	return out
}

// variable describes a variable, by the object in its cell where it has one.
func (v *values) variable(l local) sdk.ManagedVariable {
	value := l.value
	if l.isCell && value != 0 {
		if c, err := v.r.class(value); err == nil && c.name == "cell" {
			if value, err = v.r.pointer(value, v.r.layout.other.cellValue); err != nil {
				return sdk.ManagedVariable{Name: l.name, IsParam: l.isParam, Status: sdk.ValueUnreadable, Text: err.Error()}
			}
		}
	}
	if value == 0 {
		return sdk.ManagedVariable{Name: l.name, IsParam: l.isParam, Status: sdk.ValueUnset}
	}
	out := v.describe(l.name, value)
	out.IsParam = l.isParam
	return out
}

// placed are the variables that have places in a frame.
func (v *values) placed(f *frame) ([]local, error) {
	if v.r.layout.code.localNames.isKnown() {
		return v.placedByKind(f)
	}
	return v.placedByTuple(f)
}

// params is how many of the first variables are parameters.
func (c *code) params() int {
	n := int(c.arguments) + int(c.keywordOnly)
	if c.flags&codeHasMore != 0 {
		n++
	}
	if c.flags&codeHasNamed != 0 {
		n++
	}
	return n
}

// placedByKind reads the variables of a frame from 3.11 on: one list of all, and the kind of each.
func (v *values) placedByKind(f *frame) ([]local, error) {
	l := &v.r.layout.code
	tuple, err := v.r.pointer(f.code, l.localNames)
	if err != nil {
		return nil, err
	}
	object, err := v.r.pointer(f.code, l.localKinds)
	if err != nil {
		return nil, err
	}
	kinds, count, err := v.r.bytes(object, maxLocals)
	if err != nil {
		return nil, err
	}
	names, nameCount, err := v.namesOf(tuple)
	if err != nil {
		return nil, err
	}
	if nameCount != count || count > maxLocals {
		return nil, fmt.Errorf("code at %#x: %d names and %d kinds of variables, expected as many, at most %d", f.code, nameCount, count, maxLocals)
	}
	places, err := v.r.pointers(f.address+v.place(v.r.layout.frame.locals), count)
	if err != nil {
		return nil, err
	}
	var list []local
	for i, name := range names {
		// The lowest bits of a place say who counts the reference.
		one := local{name: name, isParam: i < f.resolved.params(), isCell: kinds[i]&(localIsCell|localIsFree) != 0, value: places[i] &^ 3}
		if kinds[i]&localIsHidden != 0 && one.value == 0 || name == "" {
			continue
		}
		list = append(list, one)
	}
	return list, nil
}

// namesOf reads a tuple of names.
func (v *values) namesOf(tuple uint64) (list []string, count uint64, err error) {
	if err := v.r.expect(tuple, classIsTuple, "tuple"); err != nil {
		return nil, 0, err
	}
	items, count, err := v.r.items(tuple, maxLocals)
	if err != nil {
		return nil, 0, err
	}
	v.r.mem.Prefetch(items, 64)
	for _, a := range items {
		name, err := v.r.text(a, maxName)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, name)
	}
	return list, count, nil
}

// placedByTuple reads the variables of a frame before 3.11: the function's own, then the ones that
// functions in it use, then the ones of functions around it.
func (v *values) placedByTuple(f *frame) ([]local, error) {
	l := &v.r.layout.code
	var all []local
	for group, member := range []offset{l.variables, l.cells, l.free} {
		tuple, err := v.r.pointer(f.code, member)
		if err != nil {
			return nil, err
		}
		names, _, err := v.namesOf(tuple)
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			all = append(all, local{name: name, isParam: group == 0 && i < f.resolved.params(), isCell: group > 0})
		}
	}
	if len(all) > maxLocals {
		return nil, fmt.Errorf("code at %#x has %d variables, expected at most %d", f.code, len(all), maxLocals)
	}
	places, err := v.r.pointers(f.address+v.place(v.r.layout.frame.locals), uint64(len(all)))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].value = places[i]
	}
	return withoutMoved(all), nil
}

// withoutMoved puts the cells of parameters that functions within use in the places of the parameters, whose values were
// moved there.
func withoutMoved(all []local) (list []local) {
	params := map[string]int{}
	for _, l := range all {
		if at, isMoved := params[l.name]; isMoved && l.isCell {
			list[at].isCell, list[at].value = true, l.value
			continue
		}
		if l.isParam {
			params[l.name] = len(list)
		}
		list = append(list, l)
	}
	return list
}

// named are the variables of a module or the body of a class, without the names of the language itself.
func (v *values) named(f *frame) ([]local, error) {
	dict, err := v.r.pointer(f.address, v.r.layout.frame.namespace)
	if err != nil || dict == 0 {
		return nil, err
	}
	if c, err := v.r.class(dict); err != nil || !c.is(classIsDict) {
		return nil, err
	}
	entries, _, err := v.entries(dict, v.elements)
	if err != nil {
		return nil, err
	}
	v.prefetchNames(entries)
	var list []local
	for _, e := range entries {
		name, err := v.r.text(e.key, maxName)
		if err != nil || len(name) > 4 && name[:2] == "__" && name[len(name)-2:] == "__" {
			continue
		}
		list = append(list, local{name: name, value: e.value})
	}
	return list, nil
}
