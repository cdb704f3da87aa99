package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of objects and arrays. What is read nests to six.
const maxDepth = 64

// maxText is the length in bytes of a string that is kept, as sdk.MaxText.
const maxText = 1 << 16

// A jsonReader reads one JSON text (RFC 8259) from front to back, without
// building it: a text of 256 MiB may describe a million waves, and what of it
// is kept is decided value by value.
//
// encoding/json is not used for this because it takes members whatever their
// case, takes the last of two members with one name, and has no bound on how
// many values a list makes.
type jsonReader struct {
	data  []byte
	at    int
	depth int
}

// A jsonError says where a JSON text is not what was expected.
type jsonError struct {
	offset int
	path   string // of the value, as in ".threads[3].id"
	reason string
}

func (e *jsonError) Error() string {
	where := fmt.Sprintf("offset %#x", e.offset)
	if e.path != "" {
		where += ", " + e.path[min(1, len(e.path)):]
	}
	return where + ": " + e.reason
}

func (r *jsonReader) fail(at int, format string, args ...any) error {
	return &jsonError{offset: at, reason: fmt.Sprintf(format, args...)}
}

// within adds the step that led to a value to the path of an error.
func within(err error, step string) error {
	var e *jsonError
	if errors.As(err, &e) {
		e.path = step + e.path
	}
	return err
}

// next skips white space and returns the first byte after it; 0 at the end.
func (r *jsonReader) next() byte {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// unexpected is the error for a value that is not of the kind expected.
func (r *jsonReader) unexpected(want string) error {
	c := r.next()
	found := "the text ends"
	switch {
	case r.at >= len(r.data):
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
	return r.fail(r.at, "%s, expected %s", found, want)
}

// end says that nothing but white space may follow.
func (r *jsonReader) end() error {
	if r.next(); r.at < len(r.data) {
		return r.unexpected("the end of the text")
	}
	return nil
}

// enter begins an object or array.
func (r *jsonReader) enter(open byte, want string) error {
	if r.next() != open {
		return r.unexpected(want)
	}
	if r.depth++; r.depth > maxDepth {
		return r.fail(r.at, "values nest deeper than %d", maxDepth)
	}
	r.at++
	return nil
}

// object reads an object. member is called with each member's name, valid until
// it returns, and must read the member's value.
func (r *jsonReader) object(member func(name []byte) error) error {
	if err := r.enter('{', "an object"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	if r.next() == '}' {
		r.at++
		return nil
	}
	for {
		if r.next() != '"' {
			return r.unexpected("a member's name")
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		if r.next() != ':' {
			return r.unexpected("a colon")
		}
		r.at++
		if err := member(name); err != nil {
			return within(err, "."+clip(string(name)))
		}
		switch r.next() {
		case ',':
			r.at++
		case '}':
			r.at++
			return nil
		default:
			return r.unexpected("a comma or the end of the object")
		}
	}
}

// array reads an array. element is called for each element and must read it.
func (r *jsonReader) array(element func(i int) error) error {
	if err := r.enter('[', "an array"); err != nil {
		return err
	}
	defer func() { r.depth-- }()
	if r.next() == ']' {
		r.at++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return within(err, "["+strconv.Itoa(i)+"]")
		}
		switch r.next() {
		case ',':
			r.at++
		case ']':
			r.at++
			return nil
		default:
			return r.unexpected("a comma or the end of the array")
		}
	}
}

// text reads a string. Its bytes may lie in the text that is read.
func (r *jsonReader) text() ([]byte, error) {
	if r.next() != '"' {
		return nil, r.unexpected("a string")
	}
	start := r.at
	plain := true
	for i := start + 1; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.at = i + 1
			if plain {
				return r.data[start+1 : i], nil
			}
			// Escapes and bytes that are no UTF-8 are rare enough for the
			// standard library's decoder.
			var s string
			if err := json.Unmarshal(r.data[start:i+1], &s); err != nil {
				return nil, r.fail(start, "a string cannot be read: %v", err)
			}
			return []byte(s), nil
		case c == '\\':
			plain = false
			i++
		case c < 0x20:
			return nil, r.fail(i, "control character %#x in a string", c)
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	return nil, r.fail(len(r.data), "the text ends within a string")
}

// number reads the bytes of a number (RFC 8259, 6).
func (r *jsonReader) number() ([]byte, error) {
	if c := r.next(); c != '-' && (c < '0' || c > '9') {
		return nil, r.unexpected("a number")
	}
	start, i := r.at, r.at
	digits := func() bool {
		from := i
		for i < len(r.data) && r.data[i] >= '0' && r.data[i] <= '9' {
			i++
		}
		return i > from
	}
	is := func(set ...byte) bool {
		for _, c := range set {
			if i < len(r.data) && r.data[i] == c {
				i++
				return true
			}
		}
		return false
	}
	is('-')
	ok := is('0') || digits()
	if ok && is('.') {
		ok = digits()
	}
	if ok && is('e', 'E') {
		is('+', '-')
		ok = digits()
	}
	if !ok {
		return nil, r.fail(i, "expected a digit")
	}
	r.at = i
	return r.data[start:i], nil
}

// integer reads a whole number from 0 to most.
func (r *jsonReader) integer(most uint64) (uint64, error) {
	b, err := r.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || n > most {
		return 0, r.fail(r.at-len(b), "%s, expected a whole number from 0 to %d", clip(string(b)), most)
	}
	return n, nil
}

// word reads one of the bare words true, false and null.
func (r *jsonReader) word(want string) bool {
	r.next()
	if len(r.data)-r.at < len(want) || string(r.data[r.at:r.at+len(want)]) != want {
		return false
	}
	r.at += len(want)
	return true
}

// boolean reads true or false.
func (r *jsonReader) boolean() (bool, error) {
	switch {
	case r.word("true"):
		return true, nil
	case r.word("false"):
		return false, nil
	}
	return false, r.unexpected("true or false")
}

// skip reads a value of any kind and forgets it.
func (r *jsonReader) skip() (err error) {
	switch c := r.next(); {
	case c == '{':
		return r.object(func([]byte) error { return r.skip() })
	case c == '[':
		return r.array(func(int) error { return r.skip() })
	case c == '"':
		_, err = r.text()
	case c == '-' || c >= '0' && c <= '9':
		_, err = r.number()
	case !r.word("true") && !r.word("false") && !r.word("null"):
		err = r.unexpected("a value")
	}
	return err
}

// A field is a member that is read: what JSON calls it, and how its value is
// put into a T.
type field[T any] struct {
	name string
	read func(r *reader, into *T) error
}

// members reads an object by a table of its members. A member that is null is
// as one that is absent; one that is given twice is an error, as no answer to
// the question which is meant would be right; others are ignored.
func members[T any](r *reader, into *T, fields []field[T]) error {
	var seen uint64
	return r.object(func(name []byte) error {
		for i := range fields {
			if string(name) != fields[i].name {
				continue
			}
			if seen&(1<<i) != 0 {
				return r.fail(r.at, "the member is given twice")
			}
			seen |= 1 << i
			if r.word("null") {
				return nil
			}
			return fields[i].read(r, into)
		}
		return r.skip()
	})
}

// clip shortens what is quoted in a message.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
