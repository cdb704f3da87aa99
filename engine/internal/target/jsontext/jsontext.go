// SPDX-License-Identifier: Apache-2.0

// Package jsontext reads the JSON (RFC 8259) that describes targets: from front to back, value
// by value, with bounds, by tables of members.
//
// encoding/json is not used for this because it ignores the case of members' names, takes the
// last of two members with one name, and does not bound the number of values in a list.
package jsontext

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of objects and arrays. Descriptions of targets nest to six, values of variables in
// reports of stacks to 264.
const MaxDepth = 512

// MaxText bounds the bytes of a string that is kept, as sdk.MaxText.
const MaxText = 1 << 16

// maxEscaped bounds a string with escapes, which is copied. Every byte of a string that is kept
// may be an escape of six bytes.
const maxEscaped = 8 * MaxText

// maxInterned bounds the strings that a Reader keeps.
const maxInterned = 1 << 16

// Reader reads one JSON text value by value, without building a tree: a text may describe a
// million waves. Data is the text, or the part of it in memory if NewStream made the Reader.
type Reader struct {
	Data []byte
	At   int // offset in Data of the next byte to read
	// Interned has strings that were read, so that a string that many values share is kept
	// once; nil keeps none.
	Interned map[string]string
	// NameBytes is the size of the strings that Name allocated.
	NameBytes uint64
	// Passed, if set, is called from time to time while a long value is skipped, with the
	// offset in Data that was reached.
	Passed func(offset int)

	depth  int
	start  int // offset in the text of Data[0]
	stream *stream
}

// Error is a violation of the expected JSON, with its place in the text.
type Error struct {
	Offset int    // in the text
	Path   string // of the value, as in ".threads[3].id"
	Reason string
}

func (e *Error) Error() string {
	where := fmt.Sprintf("offset %#x", e.Offset)
	if e.Path != "" {
		where += ", " + e.Path[min(1, len(e.Path)):]
	}
	return where + ": " + e.Reason
}

// Offset returns the offset in the text of the next byte to read.
func (r *Reader) Offset() int { return r.start + r.At }

// Fail returns an error about an offset in the text.
func (r *Reader) Fail(offset int, format string, args ...any) error {
	return &Error{Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// Within prepends the step that led to a value to the path of an error.
func Within(err error, step string) error {
	var e *Error
	if errors.As(err, &e) {
		e.Path = step + e.Path
	}
	return err
}

// Next skips white space and returns the first byte after it; 0 at the end.
func (r *Reader) Next() byte {
	if r.At < len(r.Data) && r.Data[r.At] > ' ' {
		return r.Data[r.At]
	}
	return r.nextAfterSpace()
}

func (r *Reader) nextAfterSpace() byte {
	for {
		for r.At < len(r.Data) {
			switch c := r.Data[r.At]; c {
			case ' ', '\t', '\n', '\r':
				r.At++
			default:
				return c
			}
		}
		if !r.more() {
			return 0
		}
	}
}

// Unexpected returns the error for a value of another kind than the expected.
func (r *Reader) Unexpected(want string) error {
	c := r.Next()
	found := "the text ends"
	switch {
	case r.At >= len(r.Data):
	case c == '{':
		found = "found an object"
	case c == '[':
		found = "found an array"
	case c == '"':
		found = "found a string"
	case c == '-' || c >= '0' && c <= '9':
		found = "found a number"
	case c == 't', c == 'f':
		found = "found a boolean"
	case c == 'n':
		found = "found null"
	default:
		found = fmt.Sprintf("found %q", c)
	}
	return r.Fail(r.Offset(), "%s, expected %s", found, want)
}

// End returns an error if anything except white space follows.
func (r *Reader) End() error {
	if r.Next(); r.At < len(r.Data) {
		return r.Unexpected("the end of the text")
	}
	return nil
}

// enter begins an object or array.
func (r *Reader) enter(open byte, want string) error {
	if r.Next() != open {
		return r.Unexpected(want)
	}
	if r.depth++; r.depth > MaxDepth {
		return r.Fail(r.Offset(), "values nest deeper than %d", MaxDepth)
	}
	r.At++
	return nil
}

// Object reads an object. member is called with each member's name, valid until it returns, and
// must read the member's value.
func (r *Reader) Object(member func(name []byte) error) error {
	if err := r.enter('{', "an object"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	if r.Next() == '}' {
		r.At++
		return nil
	}
	for {
		if r.Next() != '"' {
			return r.Unexpected("a member's name")
		}
		name, err := r.quoted(r.memberName)
		if err != nil {
			return err
		}
		if r.Next() != ':' {
			return r.Unexpected("a colon")
		}
		r.At++
		if err := member(name); err != nil {
			return Within(err, "."+Clip(string(name)))
		}
		switch r.Next() {
		case ',':
			r.At++
		case '}':
			r.At++
			return nil
		default:
			return r.Unexpected("a comma or the end of the object")
		}
	}
}

// Array reads an array. element is called for each element and must read it.
func (r *Reader) Array(element func(i int) error) error {
	if err := r.enter('[', "an array"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	if r.Next() == ']' {
		r.At++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return Within(err, "["+strconv.Itoa(i)+"]")
		}
		switch r.Next() {
		case ',':
			r.At++
		case ']':
			r.At++
			return nil
		default:
			return r.Unexpected("a comma or the end of the array")
		}
	}
}

// Text reads a string. Its bytes may be a part of Data.
func (r *Reader) Text() ([]byte, error) { return r.quoted(r.unescape) }

// quoted reads a string; decode decodes the text of a string that is not plain.
func (r *Reader) quoted(decode func(text []byte) ([]byte, error)) ([]byte, error) {
	if r.Next() != '"' {
		return nil, r.Unexpected("a string")
	}
	near := r.Data[r.At:min(len(r.Data), r.At+nearBytes)]
	if n := plainTo(near, 1); n < len(near) && near[n] == '"' {
		r.At += n + 1
		return near[1:n:n], nil
	}
	if r.stream == nil {
		if s := r.skipper(); s.text() {
			text := r.Data[r.At:s.offset]
			if r.At = s.offset; s.isPlain {
				return text[1 : len(text)-1], nil
			}
			return decode(text)
		}
	}
	plain := true
	for n := 1; ; { // bytes of the string
		text := r.Data[r.At:]
		for ; n < len(text); n++ {
			if n = plainTo(text, n); n == len(text) {
				break
			}
			switch c := text[n]; {
			case c == '"':
				r.At += n + 1
				if plain {
					return text[1:n], nil
				}
				return decode(text[:n+1])
			case c == '\\':
				plain = false
				n++
			case c < 0x20:
				return nil, r.Fail(r.Offset()+n, "control character %#x in a string", c)
			case c >= utf8.RuneSelf:
				plain = false
			}
		}
		if !r.more() {
			return nil, r.Fail(r.start+len(r.Data), "the text ends within a string")
		}
	}
}

// nearBytes is the number of bytes in which the end of a string is looked for first.
const nearBytes = 128

// plainTo returns an offset from n on before which all bytes are plain. It tests eight bytes at
// a time, and leaves the last few of the text to the caller: nearly all strings are plain.
func plainTo(text []byte, n int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(text)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(text[n:])
		quote, escape := x^'"'*ones, x^'\\'*ones
		// The lowest bit set is that of a byte of 0x80 or more or below 0x20, of a
		// quotation mark or of a backslash.
		if odd := (x | (x-0x20*ones)&^x | (quote-ones)&^quote | (escape-ones)&^escape) & high; odd != 0 {
			return n + bits.TrailingZeros64(odd)/8
		}
	}
	return n
}

// memberName decodes a name that is not plain. A name that is too long is unknown.
func (r *Reader) memberName(text []byte) ([]byte, error) {
	if len(text) > maxEscaped {
		return nil, nil
	}
	return r.unescape(text)
}

// unescape decodes a string that is not plain. Escapes and invalid UTF-8 are rare enough for the
// standard library's decoder.
func (r *Reader) unescape(text []byte) ([]byte, error) {
	if len(text) > maxEscaped {
		return nil, r.Fail(r.Offset()-len(text), "a string with escapes of %d bytes, expected at most %d", len(text), maxEscaped)
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, r.Fail(r.Offset()-len(text), "a string cannot be read: %v", err)
	}
	return []byte(s), nil
}

// Number reads the bytes of a number (RFC 8259, 6).
func (r *Reader) Number() ([]byte, error) {
	if c := r.Next(); c != '-' && (c < '0' || c > '9') {
		return nil, r.Unexpected("a number")
	}
	for end := r.At; ; end++ { // the whole number must be in memory
		if end == len(r.Data) {
			n := end - r.At
			if !r.more() {
				break
			}
			end = r.At + n
		}
		if !isOfNumber(r.Data[end]) {
			break
		}
	}
	if err := r.Err(); err != nil {
		return nil, err // the number may be longer
	}
	start := r.At
	size, ok := numberBytes(r.Data[start:])
	if !ok {
		return nil, r.Fail(r.start+start+size, "expected a digit")
	}
	r.At += size
	return r.Data[start:r.At], nil
}

// isOfNumber reports whether a byte may be a part of a number.
func isOfNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c|0x20 == 'e'
}

// Integer reads an integer from 0 to most.
func (r *Reader) Integer(most uint64) (uint64, error) {
	b, err := r.Number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || n > most {
		return 0, r.Fail(r.Offset()-len(b), "%s, expected a whole number from 0 to %d", Clip(string(b)), most)
	}
	return n, nil
}

// Word reads one of the bare words true, false and null.
func (r *Reader) Word(want string) bool {
	r.Next()
	for len(r.Data)-r.At < len(want) && r.more() {
	}
	if len(r.Data)-r.At < len(want) || string(r.Data[r.At:r.At+len(want)]) != want {
		return false
	}
	r.At += len(want)
	return true
}

// Boolean reads true or false.
func (r *Reader) Boolean() (bool, error) {
	switch {
	case r.Word("true"):
		return true, nil
	case r.Word("false"):
		return false, nil
	}
	return false, r.Unexpected("true or false")
}

// Name reads a string that many values share.
func (r *Reader) Name() (string, error) {
	r.Next()
	offset := r.Offset()
	b, err := r.Text()
	if err != nil {
		return "", err
	}
	if len(b) > MaxText {
		return "", r.Fail(offset, "a string of %d bytes, expected at most %d", len(b), MaxText)
	}
	if s, ok := r.Interned[string(b)]; ok {
		return s, nil
	}
	s := string(b)
	r.NameBytes += uint64(len(s))
	if r.Interned != nil && len(r.Interned) < maxInterned {
		r.Interned[s] = s
	}
	return s, nil
}

// Identifier reads an ID: a string, or an integer that stands for its decimal digits.
func (r *Reader) Identifier() (string, error) {
	if c := r.Next(); c == '"' {
		return r.Name()
	}
	if c := r.Next(); c < '0' || c > '9' {
		return "", r.Unexpected("a string")
	}
	n, err := r.Integer(math.MaxUint64)
	return strconv.FormatUint(n, 10), err
}

// Hex is a hexadecimal number of at most 64 bits that may be absent or wrong.
type Hex struct {
	Value     uint64
	Wrong     string // why it is invalid; "" if it is valid
	IsPresent bool
}

// Problem returns why a number cannot be used; "" if it can.
func (n Hex) Problem() string {
	if !n.IsPresent {
		return "is missing"
	}
	return n.Wrong
}

// Hex reads a string with a hexadecimal number. An invalid number is no error of the text.
func (r *Reader) Hex() (Hex, error) {
	b, err := r.Text()
	if err != nil {
		return Hex{}, err
	}
	return ParseHex(b), nil
}

// ParseHex reads a hexadecimal number with its 0x.
func ParseHex(text []byte) (n Hex) {
	n.IsPresent = true
	digits, ok := HexDigits(text)
	if !ok {
		n.Wrong = fmt.Sprintf("is %q, expected 0x and hexadecimal digits", Clip(string(text)))
		return n
	}
	var err error
	if n.Value, err = strconv.ParseUint(string(digits), 16, 64); err != nil {
		n.Wrong = fmt.Sprintf("is %s, expected at most 64 bits", Clip(string(text)))
	}
	return n
}

// HexDigits returns the digits of a hexadecimal number with its 0x.
func HexDigits(text []byte) ([]byte, bool) {
	if len(text) < 3 || text[0] != '0' || text[1]|0x20 != 'x' {
		return nil, false
	}
	for _, c := range text[2:] {
		if !isHexDigit(c) {
			return nil, false
		}
	}
	return text[2:], true
}

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// Group reads the three coordinates of a work-group.
func (r *Reader) Group() (g [3]uint32, err error) {
	offset, n := r.Offset(), 0
	err = r.Array(func(i int) error {
		v, err := r.Integer(math.MaxUint32)
		if err != nil {
			return err
		}
		if n = i + 1; i < len(g) {
			g[i] = uint32(v) //nolint:gosec // checked
		}
		return nil
	})
	if err == nil && n != len(g) {
		err = r.Fail(offset, "%d coordinates, expected %d", n, len(g))
	}
	return g, err
}

// Field is a member that is read: its name in JSON, and the function that reads its value into a
// T.
type Field[T any] struct {
	Name string
	Read func(r *Reader, into *T) error
}

// Members reads an object by a table of its members. A member that is null counts as absent; a
// member that occurs twice is an error, as either may be meant; unknown members are ignored.
func Members[T any](r *Reader, into *T, fields []Field[T]) error {
	var seen uint64
	next := 0 // most texts have the members in the order of the table
	return r.Object(func(name []byte) error {
		for range fields {
			i := next
			if next++; next == len(fields) {
				next = 0
			}
			if string(name) != fields[i].Name {
				continue
			}
			if seen&(1<<i) != 0 {
				return r.Fail(r.Offset(), "the member is given twice")
			}
			seen |= 1 << i
			if r.Word("null") {
				return nil
			}
			return fields[i].Read(r, into)
		}
		return r.Skip()
	})
}

// List reads an array of at most most objects.
func List[T any](r *Reader, into *[]T, most int, fields []Field[T]) error {
	return Each(r, most, fields, func(element *T) error {
		*into = append(*into, *element)
		return nil
	})
}

// Each reads an array of at most most objects, and passes each to use, in memory that the next one
// is read into.
func Each[T any](r *Reader, most int, fields []Field[T], use func(element *T) error) error {
	var element T // of a million there is one at a time
	return r.Array(func(i int) error {
		if i >= most {
			return r.Fail(r.Offset(), "the list has more than %d elements", most)
		}
		element = *new(T)
		if err := Members(r, &element, fields); err != nil {
			return err
		}
		return use(&element)
	})
}

// The setters of members with simple values.

// SetName reads a string into a member of T.
func SetName[T any](member func(*T) *string) func(*Reader, *T) error {
	return func(r *Reader, into *T) (err error) { *member(into), err = r.Name(); return }
}

// SetID reads an ID into a member of T.
func SetID[T any](member func(*T) *string) func(*Reader, *T) error {
	return func(r *Reader, into *T) (err error) { *member(into), err = r.Identifier(); return }
}

// SetHex reads a hexadecimal number into a member of T.
func SetHex[T any](member func(*T) *Hex) func(*Reader, *T) error {
	return func(r *Reader, into *T) (err error) { *member(into), err = r.Hex(); return }
}

// Clip shortens a text that is quoted in a message.
func Clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
