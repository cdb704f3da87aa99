// SPDX-License-Identifier: Apache-2.0

package ruby

import "fmt"

// This file makes the labels of versions that qualify methods with their classes.

// label returns the label of a frame: a method's with its class, and a block's with those of the
// method around it.
func (r *reader) label(f *frame) (string, error) {
	owner, err := r.owner(f)
	if err != nil {
		return "", err
	}
	return r.labelIn(f.sequence, owner)
}

// labelIn returns the label of a sequence whose method is of a class; 0: none.
func (r *reader) labelIn(s *sequence, owner uint64) (label string, err error) {
	levels := 0
	for range maxLevels {
		next := s.parent
		switch s.kind {
		case sequenceMethod:
			return r.inBlocks(levels, s, owner)
		case sequenceBlock, sequencePlain:
			if s.parent == 0 || s.local == s.address {
				return r.inBlocks(levels, s, 0)
			}
			if s.kind == sequenceBlock {
				levels++
			}
		case sequenceRescue, sequenceEnsure, sequenceEval:
		default:
			return r.inBlocks(levels, s, 0)
		}
		if next == 0 {
			return r.inBlocks(levels, s, 0)
		}
		if s, err = r.sequence(next); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("instructions lie more than %d deep in each other", maxLevels)
}

// inBlocks returns the label of blocks in a sequence of a class; 0: none.
func (r *reader) inBlocks(levels int, s *sequence, owner uint64) (string, error) {
	label, err := r.qualified(owner, s.label)
	switch {
	case err != nil || levels == 0:
		return label, err
	case levels == 1:
		return "block in " + label, nil
	}
	return fmt.Sprintf("block (%d levels) in %s", levels, label), nil
}

// owner returns the class that the method of a frame is of; 0: none.
func (r *reader) owner(f *frame) (uint64, error) {
	method, err := r.method(f.ep)
	if err != nil || method == 0 {
		return 0, err
	}
	return r.word("the class of a method", method+methodOwner)
}

// singleton is set in the first word of a class of one object from 3.4 on.
const singleton = 1 << 13

// qualified returns the name of a method with its class, where that has a name.
func (r *reader) qualified(owner uint64, name string) (string, error) {
	if owner == 0 {
		return name, nil
	}
	flags, err := r.flags("the class of a method", owner, typeClass, typeModule, typeInclude)
	if err != nil {
		return "", err
	}
	form := "%s#%s"
	if flags&typeMask == typeClass && r.isSingleton(flags) {
		form = "%s.%s"
		if owner, err = r.word("the object of a class", owner+r.classAttached); err != nil {
			return "", err
		}
		if !isPlace(owner) {
			return name, nil
		}
		if flags, err = r.word("the object of a class", owner); err != nil {
			return "", err
		}
	}
	if kind := flags & typeMask; kind != typeClass && kind != typeModule {
		return name, nil
	}
	class, err := r.permanentName(owner)
	if err != nil || class == "" {
		return name, err
	}
	return fmt.Sprintf(form, class, name), nil
}

// permanentName returns the name of a class that constants lead to; "": it has none.
func (r *reader) permanentName(class uint64) (string, error) {
	is, err := r.Uint(class+r.classIsNamed, 1)
	if err != nil {
		return "", err
	}
	text, err := r.word("the name of a class", class+r.layout.className)
	if err != nil || is&1 == 0 || text == 0 {
		return "", err
	}
	return r.text(text)
}
