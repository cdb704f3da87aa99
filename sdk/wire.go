// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"
	"math"
	"slices"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// ErrMalformed is the error for a message of the wire protocol that does not conform to
// arch.proto. Its sender cannot be relied on.
var ErrMalformed = errors.New("malformed message")

// decoder checks the columns of one message. It has the first error, which
// names message and field, so that a caller checks once before it indexes.
type decoder struct {
	message string
	err     error
}

func (d *decoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s.%s: %s", ErrMalformed, d.message, field, fmt.Sprintf(format, args...))
	}
}

// wrap records an error of a message inside this one.
func (d *decoder) wrap(field string, err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("%s.%s: %w", d.message, field, err)
	}
}

// entries checks how many entries a list has.
func (d *decoder) entries(field string, n int) int {
	if n > MaxBatch {
		d.fail(field, "%d entries, expected at most %d", n, MaxBatch)
	}
	return n
}

// length checks that a column has one element for each of n entries.
func (d *decoder) length(field string, got, n int) {
	if got != n {
		d.fail(field, "%d elements, expected %d", got, n)
	}
}

// sum checks that a column of counts adds up to the number of elements.
func (d *decoder) sum(field string, counts []uint32, elements int) {
	var total uint64
	for _, c := range counts {
		total += uint64(c)
	}
	if total != uint64(elements) {
		d.fail(field, "a sum of %d, expected %d, the elements there are", total, elements)
	}
}

// small checks that a number fits into a smaller field.
func (d *decoder) small(field string, v uint32, most uint32) {
	if v > most {
		d.fail(field, "%d, expected at most %d", v, most)
	}
}

// enum checks that v is one of the values 0 to last.
func enum[E ~int32, T ~uint8](d *decoder, field string, v E, last T) T {
	if v < 0 || v > E(last) {
		d.fail(field, "%d is not one of its values, 0 to %d", v, last)
		return 0
	}
	return T(v)
}

// enums checks a column of n values of 0 to last.
func enums[E ~int32, T ~uint8](d *decoder, field string, column []E, n int, last T) {
	d.length(field, len(column), n)
	for i, v := range column {
		if v < 0 || v > E(last) {
			d.fail(field, "%d at %d is not one of its values, 0 to %d", v, i, last)
			return
		}
	}
}

// column builds a column from a list.
func column[T, U any](list []T, get func(*T) U) []U {
	if len(list) == 0 {
		return nil
	}
	c := make([]U, len(list))
	for i := range list {
		c[i] = get(&list[i])
	}
	return c
}

// unlessZero leaves out a column whose elements are all 0.
func unlessZero[N uint32 | uint64](column []N) []N {
	if slices.ContainsFunc(column, func(v N) bool { return v != 0 }) {
		return column
	}
	return nil
}

// sparse returns a column of n elements, which are all 0 where the column was left out.
func sparse[N uint32 | uint64](d *decoder, field string, column []N, n int) []N {
	if len(column) == 0 && d.err == nil {
		return make([]N, n)
	}
	d.length(field, len(column), n)
	return column
}

// listOf decodes a list of n entries; nil for none, or after an error.
func listOf[T any](d *decoder, n int, entry func(i int) T) []T {
	if d.err != nil || n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

// result returns a message that was decoded, or the first error in it.
func result[M any](d *decoder, message *M) (*M, error) {
	if d.err != nil {
		return nil, d.err
	}
	return message, nil
}

// blobs builds a column of byte strings from a list.
func blobs[T any, B ~string | ~[]byte](list []T, get func(*T) B) *pb.Blobs {
	var size int
	for i := range list {
		size += len(get(&list[i]))
	}
	b := &pb.Blobs{Lengths: make([]uint32, len(list))}
	if size > 0 {
		b.Data = make([]byte, 0, size)
	}
	for i := range list {
		v := get(&list[i])
		b.Lengths[i] = uint32(len(v))
		b.Data = append(b.Data, v...)
	}
	return b
}

// texts builds a column from a list of strings.
func texts(list []string) *pb.Blobs {
	return blobs(list, func(s *string) string { return *s })
}

// bytesCursor goes through a column of byte strings, which alias the message.
type bytesCursor struct {
	lengths []uint32
	data    []byte
}

// bytes checks a column of n byte strings and begins at its first.
func (d *decoder) bytes(field string, b *pb.Blobs, n int) bytesCursor {
	d.length(field, len(b.GetLengths()), n)
	d.sum(field, b.GetLengths(), len(b.GetData()))
	return bytesCursor{b.GetLengths(), b.GetData()}
}

// next returns the next byte string; an empty one is nil.
func (c *bytesCursor) next() []byte {
	n := c.lengths[0]
	c.lengths = c.lengths[1:]
	if n == 0 {
		return nil
	}
	v := c.data[:n:n]
	c.data = c.data[n:]
	return v
}

// textCursor goes through a column of strings, which share one allocation.
type textCursor struct {
	lengths []uint32
	data    string
}

// texts checks a column of n strings, each of at most MaxText bytes, and begins
// at its first.
func (d *decoder) texts(field string, b *pb.Blobs, n int) textCursor {
	d.length(field, len(b.GetLengths()), n)
	d.sum(field, b.GetLengths(), len(b.GetData()))
	for i, l := range b.GetLengths() {
		if l > MaxText {
			d.fail(field, "%d bytes at %d, expected at most %d", l, i, MaxText)
			break
		}
	}
	if d.err != nil {
		return textCursor{}
	}
	return textCursor{b.GetLengths(), string(b.GetData())}
}

func (c *textCursor) next() string {
	n := c.lengths[0]
	c.lengths = c.lengths[1:]
	v := c.data[:n]
	c.data = c.data[n:]
	return v
}

// textList decodes a list of strings.
func (d *decoder) textList(field string, b *pb.Blobs) []string {
	n := d.entries(field, len(b.GetLengths()))
	c := d.texts(field, b, n)
	if d.err != nil || n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = c.next()
	}
	return list
}

// text checks a single string.
func (d *decoder) text(field, s string) string {
	if len(s) > MaxText {
		d.fail(field, "%d bytes, expected at most %d", len(s), MaxText)
	}
	return s
}

// offsetsOf converts lengths to offsets. Their sum was checked against the size of the
// data, which is below 4 GiB.
func offsetsOf(lengths []uint32) []uint32 {
	offsets := make([]uint32, len(lengths)+1)
	for i, l := range lengths {
		offsets[i+1] = offsets[i] + l
	}
	return offsets
}

// lengthsOf converts the offsets of n byte strings in data to lengths.
func lengthsOf(field string, offsets []uint32, n, data int) ([]uint32, error) {
	if n == 0 && len(offsets) == 0 && data == 0 {
		return nil, nil
	}
	if len(offsets) != n+1 {
		return nil, fmt.Errorf("%s: %d offsets, expected %d", field, len(offsets), n+1)
	}
	if offsets[0] != 0 || uint64(offsets[n]) != uint64(data) {
		return nil, fmt.Errorf("%s: from %d to %d, expected 0 to %d", field, offsets[0], offsets[n], data)
	}
	lengths := make([]uint32, n)
	for i := range lengths {
		if offsets[i+1] < offsets[i] {
			return nil, fmt.Errorf("%s[%d]: %d after %d, expected ascending offsets", field, i+1, offsets[i+1], offsets[i])
		}
		lengths[i] = offsets[i+1] - offsets[i]
	}
	return lengths, nil
}

// size32 checks that data can be counted in 32 bits.
func (d *decoder) size32(field string, data []byte) {
	if uint64(len(data)) > math.MaxUint32 {
		d.fail(field, "%d bytes, expected less than 4 GiB", len(data))
	}
}
