// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// extent is a dimension of an array, with the values from the object.
type extent struct {
	lower  int64
	count  uint64
	stride int64 // bytes from one element to the next; 0: they follow one another

	isVector bool // of the hardware: its elements are numbers, even if they are bytes
}

// array reads an array.
func (r *Reader) array(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location, depth int) {
	dimensions, err := t.Dimensions()
	if err != nil {
		fail(v, err)
		return
	}
	element, err := t.Element()
	if err != nil {
		fail(v, err)
		return
	}
	data, err := r.dataLocation(ctx, t, l)
	if err != nil {
		fail(v, err)
		return
	}
	extents := make([]extent, len(dimensions))
	for i := range dimensions {
		if extents[i], err = r.extent(ctx, &dimensions[i], l); err != nil {
			fail(v, fmt.Errorf("bounds of the array: %w", err))
			return
		}
		extents[i].isVector = t.IsVector
	}
	if len(extents) == 0 {
		extents = []extent{{}} // the number of elements is not known
	}
	if plain, err := element.Plain(); err == nil && plain.IsDeclaration {
		element = plain.Complete()
	}
	size := element.Size
	if !element.IsSized {
		fail(v, fmt.Errorf("elements of the array: %w", errNoSize))
		return
	}
	if t.Stride > 0 {
		size = t.Stride
	}
	r.elements(ctx, v, element, data, extents, size, depth)
}

// extent returns a dimension of the array object.
func (r *Reader) extent(ctx context.Context, d *dwarf.Dimension, object locexpr.Location) (x extent, err error) {
	if x.lower, err = r.bound(ctx, &d.Lower, object); err != nil {
		return x, err
	}
	if d.Stride.HasValue() {
		stride, err := r.bound(ctx, &d.Stride, object)
		if err != nil {
			return x, err
		}
		x.stride = stride
	}
	if d.Count.HasValue() {
		n, err := r.bound(ctx, &d.Count, object)
		x.count = uint64(max(n, 0))
		return x, err
	}
	if !d.Upper.HasValue() {
		return x, nil // a flexible array
	}
	upper, err := r.bound(ctx, &d.Upper, object)
	if err == nil && upper >= x.lower {
		x.count = uint64(upper-x.lower) + 1
	}
	return x, err
}

// elements reads the elements of an array with dimensions. size is the size of an element, in
// bytes.
func (r *Reader) elements(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location, extents []extent, size uint64, depth int) {
	x := extents[0]
	inner, err := distance(extents, size)
	if err != nil {
		fail(v, err)
		return
	}
	v.Shape = trace.ShapeArray
	if character := r.character(t); len(extents) == 1 && !x.isVector && character != nil && inner == int64(character.Size()/8) && x.count > 0 {
		err := r.characters(ctx, v, character, l, x.count)
		if err == nil {
			return
		}
		if fail(v, err); !IsOptimizedOut(err) {
			return
		}
		defer func() {
			if v.Status == trace.ValueOptimizedOut { // else some of them are not
				v.Children, v.More = nil, 0
			}
		}()
	}
	if x.count > 0 && depth+1 >= r.limits.Depth && !r.isLeaf(t) {
		v.IsDeep = true
		return
	}
	n := min(x.count, uint64(r.limits.Elements))
	for i := range n {
		place, err := offset(l, i, inner)
		name := "[" + strconv.FormatInt(x.lower+int64(i), 10) + "]"
		v.Children = append(v.Children, trace.Value{Name: name, Status: trace.ValueOK})
		child := &v.Children[len(v.Children)-1]
		switch {
		case err != nil:
			child.Type = t.String()
			fail(child, err)
		case len(extents) > 1:
			child.Type = t.String()
			if r.left--; r.left < 0 {
				fail(child, errTooMany)
			} else {
				r.elements(ctx, child, t, place, extents[1:], size, depth)
			}
		default:
			r.read(ctx, child, name, t, place, depth+1)
		}
		if r.left < 0 || i >= maxFailures && allFailed(v.Children) {
			n = i + 1
			break
		}
	}
	v.More = x.count - n
	setStatus(v)
}

// distance returns the distance between elements of the outermost dimension, in bytes; size is
// the size of an element of the innermost.
func distance(extents []extent, size uint64) (int64, error) {
	if extents[0].stride != 0 {
		return extents[0].stride, nil
	}
	for _, x := range extents[1:] {
		high, low := bits.Mul64(size, x.count)
		if high != 0 || low > 1<<56 {
			return 0, errors.New("an array of more than 2^56 bytes")
		}
		size = low
	}
	return int64(min(size, 1<<62)), nil
}

// maxFailures is the number of unreadable elements after which the rest is not tried.
const maxFailures = 16

func allFailed(list []trace.Value) bool {
	for i := range list {
		if list[i].Status != trace.ValueFailed {
			return false
		}
	}
	return true
}

// offset returns the location of the element with an index; distance is between two elements.
func offset(l locexpr.Location, index uint64, distance int64) (locexpr.Location, error) {
	size, sign := uint64(distance), int64(8)
	if distance < 0 {
		size, sign = -size, -8
	}
	high, low := bits.Mul64(index, size)
	if high != 0 || low > 1<<59 {
		return l, fmt.Errorf("element %d of %d bytes: %w", index, distance, locexpr.ErrOutOfBounds)
	}
	return l.Offset(int64(low) * sign)
}

// isSimple reports whether values of a type have no parts.
func isSimple(t *dwarf.Type) bool {
	switch t.Kind {
	case dwarf.KindStructure, dwarf.KindUnion, dwarf.KindArray:
		return false
	}
	return true
}

// characters reads an array of characters as a string. Characters 0 at its end are left out.
// Where one of them cannot be read v is unchanged.
func (r *Reader) characters(ctx context.Context, v *trace.Value, t *locexpr.BaseType, l locexpr.Location, count uint64) error {
	n, size := min(count, uint64(r.limits.Elements)), t.Size()/8
	b, err := r.bytes(ctx, l, n*size)
	if err != nil {
		return err
	}
	codes := make([]rune, n)
	end := 0
	for i := range codes {
		codes[i] = rune(integer(b[uint64(i)*size:uint64(i+1)*size], r.context.ByteOrder()))
		if codes[i] != 0 {
			end = i + 1
		}
	}
	text := quoted(codes[:end], t)
	if n < count && end == len(codes) {
		text += "..."
	}
	v.Shape = trace.ShapeScalar
	setText(v, text)
	return nil
}

// fortranString reads a value of a DW_TAG_string_type (DWARF 5, 5.11).
func (r *Reader) fortranString(ctx context.Context, v *trace.Value, t *dwarf.Type, l locexpr.Location) {
	size := t.Size
	if b, err := t.Bound(dw.AttrStringLength); err == nil && b.HasValue() {
		n, err := r.bound(ctx, &b, l)
		if err != nil {
			fail(v, err)
			return
		}
		size = uint64(max(n, 0))
	}
	l, err := r.dataLocation(ctx, t, l)
	if err != nil {
		fail(v, err)
		return
	}
	n := min(size, uint64(r.limits.Elements))
	b, err := r.bytes(ctx, l, n)
	if err != nil {
		fail(v, err)
		return
	}
	codes := make([]rune, len(b))
	for i := range b {
		codes[i] = rune(b[i])
	}
	text := quoted(codes, &locexpr.BaseType{Bits: 8})
	if n < size {
		text += "..."
	}
	setText(v, text)
}
