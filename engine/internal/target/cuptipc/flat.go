// SPDX-License-Identifier: Apache-2.0

package cuptipc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// flat reads FlatBuffers (flatbuffers.dev, "Internals"): tables whose members are found by a table
// of offsets, vectors and strings, all at offsets within the bytes.
type flat []byte

// errFlat is the error for an offset that leads out of the bytes.
var errFlat = errors.New("expected a part of a FlatBuffer")

// word returns 4 bytes.
func (f flat) word(offset uint64) (uint32, error) {
	if offset > uint64(len(f)) || uint64(len(f))-offset < 4 {
		return 0, fmt.Errorf("offset %#x of %d bytes: %w", offset, len(f), errFlat)
	}
	return binary.LittleEndian.Uint32(f[offset:]), nil
}

// refer follows the offset that is at an offset.
func (f flat) refer(offset uint64) (uint64, error) {
	n, err := f.word(offset)
	return offset + uint64(n), err
}

// table is a table of a FlatBuffer.
type table struct {
	flat
	offset uint64
	fields []byte // offsets of 2 bytes from the table; 0: the member is left out
}

// tableAt returns the table at an offset.
func (f flat) tableAt(offset uint64) (t table, err error) {
	back, err := f.word(offset)
	if err != nil {
		return t, err
	}
	start := int64(offset) - int64(int32(back)) //nolint:gosec // an offset in memory
	if start < 0 || uint64(start)+4 > uint64(len(f)) {
		return t, fmt.Errorf("offset %#x of %d bytes: a table of members at %#x: %w", offset, len(f), start, errFlat)
	}
	size := uint64(binary.LittleEndian.Uint16(f[start:]))
	if size < 4 || size > uint64(len(f))-uint64(start) {
		return t, fmt.Errorf("offset %#x of %d bytes: a table of members of %d bytes: %w", start, len(f), size, errFlat)
	}
	return table{f, offset, f[uint64(start)+4 : uint64(start)+size]}, nil
}

// place returns where a member is; ok is false where it is left out.
func (t *table) place(member int) (offset uint64, ok bool) {
	if len(t.fields) < 2*member+2 {
		return 0, false
	}
	n := binary.LittleEndian.Uint16(t.fields[2*member:])
	return t.offset + uint64(n), n != 0
}

// number returns a member of size bytes, 4 or 8; 0 where it is left out.
func (t *table) number(member int, size uint64) (uint64, error) {
	offset, ok := t.place(member)
	switch {
	case !ok:
		return 0, nil
	case offset > uint64(len(t.flat)) || uint64(len(t.flat))-offset < size:
		return 0, fmt.Errorf("member %d at %#x of %d bytes: %w", member, offset, len(t.flat), errFlat)
	case size == 4:
		return uint64(binary.LittleEndian.Uint32(t.flat[offset:])), nil
	}
	return binary.LittleEndian.Uint64(t.flat[offset:]), nil
}

// vector returns the elements of a member, which have a size each, and where they begin.
func (t *table) vector(member int, size uint64) (elements []byte, start uint64, err error) {
	offset, ok := t.place(member)
	if !ok {
		return nil, 0, nil
	}
	if offset, err = t.refer(offset); err != nil {
		return nil, 0, err
	}
	count, err := t.word(offset)
	if err != nil {
		return nil, 0, err
	}
	start = offset + 4
	if most := (uint64(len(t.flat)) - start) / size; uint64(count) > most {
		return nil, 0, fmt.Errorf("a vector of %d elements at %#x, expected at most %d", count, offset, most)
	}
	return t.flat[start : start+uint64(count)*size], start, nil
}

// text returns a string.
func (t *table) text(member int) (string, error) {
	b, _, err := t.vector(member, 1)
	return string(b), err
}

// tables calls f with each table of a vector of them.
func (t *table) tables(member int, f func(table) error) error {
	list, start, err := t.vector(member, 4)
	if err != nil {
		return err
	}
	for i := range uint64(len(list)) / 4 {
		offset, err := t.refer(start + 4*i)
		if err != nil {
			return err
		}
		element, err := t.tableAt(offset)
		if err != nil {
			return err
		}
		if err := f(element); err != nil {
			return err
		}
	}
	return nil
}
