// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// This file reads the names that numbers stand for: of methods and variables.

const (
	nameUnit    = 512 // names in an array of the table
	nameShift   = 4   // bits of a number that say what it names
	namesArrays = 16  // the array of arrays, from the table on
	maxNames    = 1 << 26
)

// findNames finds the table of names among the variables: it has the names of operators at their
// characters.
func (r *reader) findNames() (uint64, error) {
	for _, v := range r.data() {
		for i := 0; i+32 <= len(v.bytes); i += 8 {
			last := uint64(binary.LittleEndian.Uint32(v.bytes[i:]))
			table, arrays := binary.LittleEndian.Uint64(v.bytes[i+8:]), binary.LittleEndian.Uint64(v.bytes[i+namesArrays:])
			if last < nameUnit || last > maxNames || !isPlace(table) || !isPlace(arrays) {
				continue
			}
			if r.isNames(v.address + uint64(i)) { //nolint:gosec // an index
				return v.address + uint64(i), nil //nolint:gosec // an index
			}
		}
	}
	return 0, errors.New("no variable is a table of names")
}

// isNames reports whether a table of names is at an address.
func (r *reader) isNames(table uint64) bool {
	for _, operator := range "+<`" {
		if name, err := r.nameIn(table, uint64(operator)); err != nil || name != string(operator) { //nolint:gosec // a character
			return false
		}
	}
	return true
}

// name returns the name that a number stands for.
func (r *reader) name(number uint64) (string, error) {
	if r.names == 0 {
		return "", errors.New("the table of names is not known")
	}
	return r.nameIn(r.names, number)
}

func (r *reader) nameIn(table, number uint64) (string, error) {
	if number > r.lastOperator {
		if number&1 == 0 && isPlace(number) { // a symbol that was made while the program ran
			text, err := r.word("the name of a symbol", number+24)
			if err != nil {
				return "", err
			}
			return r.text(text)
		}
		number >>= nameShift
	}
	last, err := r.Uint(table, 4)
	if err != nil {
		return "", err
	}
	if number > last {
		return "", fmt.Errorf("name %d, expected at most %d", number, last)
	}
	arrays, err := r.word("the names", table+namesArrays)
	if err != nil {
		return "", err
	}
	array, err := r.element(arrays, number/nameUnit)
	if err != nil {
		return "", err
	}
	text, err := r.element(array, number%nameUnit*2)
	if err != nil {
		return "", err
	}
	return r.text(text)
}
