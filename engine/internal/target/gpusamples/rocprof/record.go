// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// maxFields bounds the members of a record that are read.
const maxFields = 16

// field is a member of a record that is read.
type field struct {
	path   string // of the member, with dots
	isText bool   // else it is a whole number
}

// values are the members of a record that are read, by their index in its fields.
type values struct {
	numbers  [maxFields]uint64 // two's complement where they are negative
	texts    [maxFields][]byte // valid until the next record is read
	present  uint32            // a bit for each field
	negative uint32
}

func (v *values) has(field int) bool { return v.present&(1<<field) != 0 }

// number returns a member that is not negative; false where it is absent or negative.
func (v *values) number(field int) (uint64, bool) {
	if !v.has(field) || v.negative&(1<<field) != 0 {
		return 0, false
	}
	return v.numbers[field], true
}

// text returns a string; nil where it is absent.
func (v *values) text(field int) []byte {
	if !v.has(field) {
		return nil
	}
	return v.texts[field]
}

// node is a member that is read, or an object with such members.
type node struct {
	name     string
	field    int // -1: an object
	isText   bool
	children []*node
}

// nodes builds the tree of fields.
func nodes(fields []field) *node {
	root := &node{field: -1}
	for i, f := range fields {
		n := root
		for name := range strings.SplitSeq(f.path, ".") {
			next := n.child([]byte(name))
			if next == nil {
				next = &node{name: name, field: -1}
				n.children = append(n.children, next)
			}
			n = next
		}
		n.field, n.isText = i, f.isText
	}
	return root
}

// child returns a member of an object; nil where it, or the object, is not read.
func (n *node) child(name []byte) *node {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// records reads the records of an array: by their shapes where the writer laid them out as
// others before, the rest member by member.
type records struct {
	values

	root *node
	most int // bytes of a record
	// learnsNone reads all records member by member: large records are few.
	learnsNone bool
	shapes     []*shape
	learned    int
}

// newRecords returns a reader of records of at most so many bytes.
func (f *File) newRecords(fields []field, most int) *records {
	return &records{root: nodes(fields), most: most, learnsNone: f.noShapes || most > maxRecord}
}

const (
	// maxShapes bounds the layouts of a record that are known at once: calls of an API
	// have one for each list of arguments.
	maxShapes = 16
	// maxShapeBytes bounds a record whose shape is learned.
	maxShapeBytes = 1 << 13
	// manyShapes is the number from which on all shapes seem to differ; then one of
	// oneShapeOf is learned.
	manyShapes, oneShapeOf = 256, 64
)

// wrongRecord is the error of one record; the ones behind it can be read.
type wrongRecord struct{ reason error }

func (e *wrongRecord) Error() string { return e.reason.Error() + ": the record is left out" }
func (e *wrongRecord) Unwrap() error { return e.reason }

// isWrongRecord reports whether an error is of one record only.
func isWrongRecord(err error) bool {
	var wrong *wrongRecord
	return errors.As(err, &wrong)
}

// next reads a record. The error is a wrongRecord where the next one can be read.
func (s *records) next(r *jsontext.Reader) error {
	if r.Next() != '{' {
		return s.wrong(r)
	}
	for i, shape := range s.shapes {
		if end, ok := shape.read(r.Data, r.At, &s.values); ok {
			if r.At = end; i > 0 {
				copy(s.shapes[1:i+1], s.shapes[:i])
				s.shapes[0] = shape
			}
			return nil
		}
	}
	return s.general(r)
}

// wrong skips an element that is no record.
func (s *records) wrong(r *jsontext.Reader) error {
	unexpected := r.Unexpected("an object")
	if err := r.Skip(); err != nil {
		return err
	}
	return &wrongRecord{unexpected}
}

// general reads a record member by member.
func (s *records) general(r *jsontext.Reader) error {
	text, err := r.Raw()
	if err != nil {
		return err
	}
	if len(text.Data) > s.most {
		return &wrongRecord{r.Fail(text.Offset, "a record of %d bytes, expected at most %d", len(text.Data), s.most)}
	}
	w := walker{r: text.Reader(), into: &s.values}
	if s.learns(len(text.Data)) {
		w.shape = &shape{}
	}
	s.values = values{}
	if err := w.object(s.root); err != nil {
		return &wrongRecord{err}
	}
	if w.shape != nil {
		w.shape.end(text.Data[w.end:], &s.values)
		if len(s.shapes) < maxShapes {
			s.shapes = append(s.shapes, nil)
		}
		copy(s.shapes[1:], s.shapes)
		s.shapes[0] = w.shape
	}
	return nil
}

// learns reports whether the shape of a record is worth learning.
func (s *records) learns(size int) bool {
	if size > maxShapeBytes || s.learnsNone {
		return false
	}
	s.learned++
	return s.learned < manyShapes || s.learned%oneShapeOf == 0
}

// walker reads a record member by member.
type walker struct {
	r     *jsontext.Reader
	into  *values
	shape *shape // nil where it is not learned
	end   int    // the offset behind the last value of shape
}

func (w *walker) object(n *node) error {
	return w.r.Object(func(name []byte) error { return w.value(n.child(name)) })
}

// value reads the value of a member; n is nil where the member is not read.
func (w *walker) value(n *node) error {
	switch c := w.r.Next(); {
	case c == 'n':
		return w.r.Skip() // as if it were absent
	case n != nil && n.field >= 0 && n.isText:
		return w.text(n)
	case n != nil && n.field >= 0:
		return w.number(n)
	case n != nil:
		return w.object(n)
	case w.shape == nil:
		return w.r.Skip()
	case c == '{':
		return w.object(nil)
	case c == '[':
		return w.r.Array(func(int) error { return w.value(nil) })
	case c == '"':
		return w.text(nil)
	case c == '-' || c >= '0' && c <= '9':
		return w.number(nil)
	}
	return w.r.Skip()
}

// setPresent sets the bit of a field that is there.
func (w *walker) setPresent(n *node) error {
	if w.into.has(n.field) {
		return w.r.Fail(w.r.Offset(), "the member is given twice")
	}
	w.into.present |= 1 << n.field
	return nil
}

// text reads a string, the value of member n unless that is nil.
func (w *walker) text(n *node) error {
	if w.r.Next() != '"' {
		return w.r.Unexpected("a string")
	}
	start, offset := w.r.At, w.r.Offset()
	if err := w.r.Skip(); err != nil {
		return err
	}
	quoted := w.r.Data[start:w.r.At]
	if w.shape != nil && isPlain(quoted) {
		w.slot(start, slotText, n)
	}
	if n == nil {
		return nil
	}
	if err := w.setPresent(n); err != nil {
		return err
	}
	text, err := textOf(jsontext.Raw{Data: quoted, Offset: offset})
	w.into.texts[n.field] = text
	return err
}

// number reads a number, the value of member n unless that is nil.
func (w *walker) number(n *node) error {
	w.r.Next()
	start, offset := w.r.At, w.r.Offset()
	text, err := w.r.Number()
	if err != nil {
		return err
	}
	end, value, isNegative, ok := wholeNumber(text, 0)
	if ok = ok && end == len(text); ok && w.shape != nil {
		w.slot(start, slotNumber, n)
	}
	switch {
	case n == nil:
		return nil
	case !ok:
		return w.r.Fail(offset, "%s, expected a whole number of at most 64 bits", jsontext.Clip(string(text)))
	}
	w.into.numbers[n.field] = value
	if isNegative {
		w.into.negative |= 1 << n.field
	}
	return w.setPresent(n)
}

// wholeNumber reads a whole number of at most 64 bits. value is its two's complement.
func wholeNumber(text []byte, offset int) (end int, value uint64, isNegative, ok bool) {
	if offset < len(text) && text[offset] == '-' {
		isNegative = true
		offset++
	}
	start := offset
	for offset-start <= 8 && len(text)-offset >= 8 { // of sixteen digits none is too large
		eight, ok := eightDigits(binary.LittleEndian.Uint64(text[offset:]))
		if !ok {
			break
		}
		value = value*100_000_000 + eight
		offset += 8
	}
	for offset < len(text) {
		digit := uint64(text[offset] - '0')
		if digit > 9 {
			break
		}
		if offset-start >= 19 { // up to here none is too large
			high, low := bits.Mul64(value, 10)
			sum, carry := bits.Add64(low, digit, 0)
			if high != 0 || carry != 0 {
				return offset, 0, false, false
			}
			value = sum
		} else {
			value = value*10 + digit
		}
		offset++
	}
	if offset == start || text[start] == '0' && offset > start+1 {
		return offset, 0, false, false
	}
	if isNegative {
		if value > 1<<63 {
			return offset, 0, false, false
		}
		value = -value
	}
	return offset, value, isNegative, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// eightDigits returns the number of eight digits, the first of which is the lowest byte.
func eightDigits(text uint64) (value uint64, ok bool) {
	const zeros, high, sixes = 0x3030303030303030, 0xf0f0f0f0f0f0f0f0, 0x0606060606060606
	if text&high != zeros || (text+sixes)&high != zeros {
		return 0, false
	}
	// Pairs of digits, then fours, then all eight, side by side in one word.
	pairs := (text - zeros) * (1 + 10<<8) >> 8 & 0x00ff00ff00ff00ff
	fours := pairs * (1 + 100<<16) >> 16 & 0x0000ffff0000ffff
	return fours * (1 + 10000<<32) >> 32, true
}

// isPlain reports whether a string in quotation marks has no escapes.
func isPlain(quoted []byte) bool {
	for _, c := range quoted[1 : len(quoted)-1] {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// shape is a layout of records: the bytes between their values. A record with the same
// bytes between its values has the same members.
type shape struct {
	parts   []part
	tail    string // behind the last value
	present uint32
}

// part is the bytes before a value, and the value.
type part struct {
	before string
	slot   slot
	field  int // -1: the value is not read
}

// slot is the type of a value.
type slot uint8

const (
	slotNumber slot = iota // a whole number
	slotText               // a plain string
)

// slot adds the value that was read last to the shape.
func (w *walker) slot(start int, kind slot, n *node) {
	field := -1
	if n != nil {
		field = n.field
	}
	w.shape.parts = append(w.shape.parts, part{string(w.r.Data[w.end:start]), kind, field})
	w.end = w.r.At
}

// end ends the shape with the bytes behind the last value.
func (s *shape) end(tail []byte, v *values) { s.tail, s.present = string(tail), v.present }

// read reads a record of this shape; ok is false where it has another.
func (s *shape) read(data []byte, offset int, v *values) (end int, ok bool) {
	v.present, v.negative = s.present, 0
	for i := range s.parts {
		p := &s.parts[i]
		if !hasAt(data, offset, p.before) {
			return 0, false
		}
		offset += len(p.before)
		if p.slot == slotText {
			n := plainBytes(data, offset)
			if n < 0 {
				return 0, false
			}
			if p.field >= 0 {
				v.texts[p.field] = data[offset+1 : offset+1+n]
			}
			offset += n + 2
			continue
		}
		if p.field < 0 && offset+1 < len(data) && isDigit(data[offset]) && !isDigit(data[offset+1]) {
			offset++ // as most numbers that are not read
			continue
		}
		end, value, isNegative, ok := wholeNumber(data, offset)
		if !ok {
			return 0, false
		}
		if offset = end; p.field >= 0 {
			v.numbers[p.field] = value
			if isNegative {
				v.negative |= 1 << p.field
			}
		}
	}
	if !hasAt(data, offset, s.tail) {
		return 0, false
	}
	return offset + len(s.tail), true
}

func hasAt(data []byte, offset int, text string) bool {
	return len(data)-offset >= len(text) && string(data[offset:offset+len(text)]) == text
}

// plainBytes returns the length of the plain string at an offset; -1: there is none.
func plainBytes(data []byte, offset int) int {
	if offset >= len(data) || data[offset] != '"' {
		return -1
	}
	n := bytes.IndexByte(data[offset+1:min(len(data), offset+2+maxShapeBytes)], '"')
	if n < 0 || !isPlain(data[offset:offset+n+2]) {
		return -1
	}
	return n
}
