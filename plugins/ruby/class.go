// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"errors"
	"fmt"
)

// This file reads the names of classes.

// classPath is the variable of a class that has its name, where a version has no place for it.
const classPath = "__classpath__"

const (
	maxClassVariables = 1 << 10
	maxAncestors      = 1 << 10
)

// className returns the name of a class or module; of one without a name what Ruby writes in its
// place.
func (r *reader) className(class uint64) (string, error) {
	flags, err := r.flags("a class", class, typeClass, typeModule)
	if err != nil {
		return "", err
	}
	kind := "Class"
	if flags&typeMask == typeModule {
		kind = "Module"
	}
	var text uint64
	switch {
	case r.layout.className != absent:
		text, err = r.word("the name of a class", class+r.layout.className)
	case r.vmShapes != absent:
		text, err = r.shapedVariable(class)
	default:
		text, err = r.tabledVariable(class)
	}
	if err != nil {
		return "", err
	}
	if !isPlace(text) {
		return fmt.Sprintf("#<%s:0x%016x>", kind, class), nil
	}
	return r.text(text)
}

// tabledVariable returns the variable with the name of a class that has a table of variables; 0:
// there is none.
func (r *reader) tabledVariable(class uint64) (uint64, error) {
	const classMore, moreTable = 24, 8
	const tableStart, tableEnd, tableEntries, entrySize = 32, 40, 48, 24
	more, err := r.word("more of a class", class+classMore)
	if err != nil {
		return 0, err
	}
	table, err := r.word("the variables of a class", more+moreTable)
	if err != nil || table == 0 {
		return 0, err
	}
	b, err := r.Bytes(table, tableEntries+8)
	if err != nil {
		return 0, fmt.Errorf("the variables of a class: %w", err)
	}
	start, end, entries := r.Number(b[tableStart:][:8]), r.Number(b[tableEnd:][:8]), r.Number(b[tableEntries:][:8])
	if start > end || end-start > maxClassVariables {
		return 0, fmt.Errorf("a class has the variables %d to %d", start, end)
	}
	for i := start; i < end; i++ {
		e, err := r.Bytes(entries+i*entrySize, entrySize)
		if err != nil {
			return 0, fmt.Errorf("the variables of a class: %w", err)
		}
		if name, err := r.name(r.Number(e[8:16])); err == nil && name == classPath {
			return r.Number(e[16:24]), nil
		}
	}
	return 0, nil
}

// shapedVariable returns the variable with the name of a class whose shape tells where variables
// are; 0: there is none.
func (r *reader) shapedVariable(class uint64) (uint64, error) {
	const classValues = 32
	const shapeName, shapeIndex, shapeParent, shapeSize = 8, 16, 28, 32
	const none = 1<<32 - 1
	flags, err := r.word("a class", class)
	if err != nil {
		return 0, err
	}
	shapes, err := r.word("the list of shapes", r.vm+r.vmShapes)
	if err != nil {
		return 0, err
	}
	shape := flags >> 32
	for range maxClassVariables {
		b, err := r.Bytes(shapes+shape*shapeSize, shapeSize)
		if err != nil {
			return 0, fmt.Errorf("a shape: %w", err)
		}
		index := r.Number(b[shapeIndex:][:4])
		if name, err := r.name(r.Number(b[shapeName:][:8])); err == nil && name == classPath && index > 0 && index <= maxClassVariables {
			values, err := r.word("the variables of a class", class+classValues)
			if err != nil {
				return 0, err
			}
			return r.word("a variable of a class", values+8*(index-1))
		}
		if shape = r.Number(b[shapeParent:][:4]); shape == none {
			return 0, nil
		}
	}
	return 0, errors.New("a shape has too many ones before it")
}

// classOf returns the name of the class of an object. Classes of one object, and included modules,
// are not those that it is said to be of.
func (r *reader) classOf(object uint64) (string, error) {
	class, err := r.word("the class of an object", object+8)
	for range maxAncestors {
		if err != nil {
			return "", err
		}
		flags, err := r.flags("a class", class, typeClass, typeInclude)
		if err != nil {
			return "", err
		}
		if flags&typeMask == typeClass && !r.isSingleton(flags) {
			return r.className(class)
		}
		if class, err = r.word("a class above", class+classSuper); err != nil {
			return "", err
		}
	}
	return "", errors.New("a class has too many above it")
}

// isSingleton reports whether a class is of one object.
func (r *reader) isSingleton(flags uint64) bool {
	if r.isQualified {
		return flags&singleton != 0
	}
	return flags&singletonBefore != 0
}

// singletonBefore stands for singleton before 3.4.
const singletonBefore = 1 << 12

// isException reports whether an object is of a class below Exception.
func (r *reader) isException(object uint64) (bool, error) {
	s := r.request.Symbols[symbolException]
	if !s.IsKnown || !isPlace(object) {
		return false, nil
	}
	root, err := r.Pointer(s.Address)
	if err != nil || root == 0 {
		return false, err
	}
	if flags, err := r.word("an object", object); err != nil || flags&typeMask != typeObject && flags&typeMask != typeData {
		return false, err // objects that are thrown are of other types
	}
	class, err := r.word("the class of an object", object+8)
	for range maxAncestors {
		if err != nil || class == 0 {
			return false, err
		}
		if class == root {
			return true, nil
		}
		if _, err = r.flags("a class", class, typeClass, typeInclude); err == nil {
			class, err = r.word("a class above", class+classSuper)
		}
	}
	return false, errors.New("a class has too many above it")
}
