// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"strings"
	"unicode/utf8"
)

// passedBytes is the number of bytes that are skipped between two calls of Passed.
const passedBytes = 8 << 20

// Skip reads a value of any kind and discards it.
func (r *Reader) Skip() error {
	// Of a stream, objects and arrays whose ends are in memory are whole.
	if c := r.Next(); r.stream == nil || c == '{' || c == '[' {
		if s := r.skipper(); s.value() {
			r.At = s.offset
			return nil
		}
	}
	// It finds an error once more, to describe it.
	return r.skipSlowly()
}

// skipper returns a skipper of the next value.
func (r *Reader) skipper() skipper {
	return skipper{data: r.Data, offset: r.At, depth: r.depth, passed: r.Passed, reported: r.At}
}

// skipSlowly is Skip for a text that is not in memory, or that has an error.
func (r *Reader) skipSlowly() (err error) {
	switch c := r.Next(); {
	case c == '{':
		return r.Object(func([]byte) error { return r.skipSlowly() })
	case c == '[':
		return r.Array(func(int) error { return r.skipSlowly() })
	case c == '"':
		_, err = r.quoted(func(text []byte) ([]byte, error) {
			if s := (skipper{data: text}); s.text() {
				return nil, nil
			}
			return r.unescape(text)
		})
	case c == '-' || c >= '0' && c <= '9':
		_, err = r.Number()
	case !r.Word("true") && !r.Word("false") && !r.Word("null"):
		err = r.Unexpected("a value")
	}
	return err
}

// skipper passes over a value of a text that is in memory, without recursion.
type skipper struct {
	data     []byte
	offset   int
	depth    int // of the objects and arrays that the value is in
	passed   func(offset int)
	reported int // the offset of the last call of passed

	isPlain bool // the last string has no escapes and only ASCII
}

// value passes over a value; false if it is invalid.
func (s *skipper) value() bool {
	var isObject depths
	outer := s.depth
	for {
		switch c := s.next(); c {
		case '{', '[':
			if s.depth++; s.depth > MaxDepth {
				return false
			}
			s.offset++
			isObject.set(s.depth, c == '{')
			if s.next() != c+2 { // ASCII: '{'+2 is '}', '['+2 is ']'
				if c == '{' && !s.name() {
					return false
				}
				continue
			}
		default:
			if !s.scalar(c) {
				return false
			}
		}
		for more := false; !more; {
			if s.depth == outer {
				return true
			}
			switch c := s.next(); {
			case c == ',':
				s.offset++
				if isObject.has(s.depth) && !s.name() {
					return false
				}
				more = true
			case c == '}' && isObject.has(s.depth), c == ']' && !isObject.has(s.depth):
				s.offset++
				s.depth--
			default:
				return false
			}
		}
	}
}

// depths is a set of depths.
type depths [MaxDepth/64 + 1]uint64

func (d *depths) has(depth int) bool { return d[depth/64]>>(depth%64)&1 != 0 }

func (d *depths) set(depth int, is bool) {
	if bit := uint64(1) << (depth % 64); is {
		d[depth/64] |= bit
	} else {
		d[depth/64] &^= bit
	}
}

// next skips white space and returns the byte after it; 0 at the end.
func (s *skipper) next() byte {
	for s.offset < len(s.data) {
		switch c := s.data[s.offset]; c {
		case ' ', '\t', '\n', '\r':
			s.offset++
		case ',', '}', ']':
			s.report(s.offset)
			return c
		default:
			return c
		}
	}
	return 0
}

// report calls passed from time to time.
func (s *skipper) report(offset int) {
	if s.passed != nil && offset-s.reported >= passedBytes {
		s.passed(offset)
		s.reported = offset
	}
}

// name passes over a member's name and the colon.
func (s *skipper) name() bool {
	if s.next() != '"' || !s.text() || s.next() != ':' {
		return false
	}
	s.offset++
	return true
}

// text passes over a string.
func (s *skipper) text() bool {
	s.isPlain = true
	for n := s.offset + 1; n < len(s.data); {
		s.report(n)
		window := s.data[:min(len(s.data), n+passedBytes)]
		if n = plainTo(window, n); n == len(window) {
			continue
		}
		switch c := s.data[n]; {
		case c == '"':
			s.offset = n + 1
			return true
		case c == '\\':
			size := escapeBytes(s.data[n:])
			if size == 0 {
				return false
			}
			n += size
			s.isPlain = false
		case c < 0x20:
			return false
		default:
			n++
			s.isPlain = s.isPlain && c < utf8.RuneSelf
		}
	}
	return false
}

// escapeBytes returns the size of the escape that a text begins with; 0 if it is invalid (RFC
// 8259, 7).
func escapeBytes(text []byte) int {
	const short, long = 2, 6
	switch {
	case len(text) < short:
	case strings.IndexByte(`"\/bfnrt`, text[1]) >= 0:
		return short
	case text[1] == 'u' && len(text) >= long:
		for _, c := range text[short:long] {
			if !isHexDigit(c) {
				return 0
			}
		}
		return long
	}
	return 0
}

// scalar passes over a value that begins with c, except an object or an array.
func (s *skipper) scalar(c byte) bool {
	word := ""
	switch {
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		size, ok := numberBytes(s.data[s.offset:])
		s.offset += size
		return ok
	case c == 't':
		word = "true"
	case c == 'f':
		word = "false"
	case c == 'n':
		word = "null"
	}
	if word == "" || len(s.data)-s.offset < len(word) || string(s.data[s.offset:s.offset+len(word)]) != word {
		return false
	}
	s.offset += len(word)
	return true
}

// numberBytes returns the size of the number that a text begins with (RFC 8259, 6). If ok is
// false, a digit is missing after n bytes.
func numberBytes(text []byte) (n int, ok bool) {
	n = lengthOf(text, 0, '-', '-')
	if zero := lengthOf(text, n, '0', '0'); zero > 0 {
		n += zero
	} else if n, ok = digits(text, n); !ok {
		return n, false
	}
	if point := lengthOf(text, n, '.', '.'); point > 0 {
		if n, ok = digits(text, n+point); !ok {
			return n, false
		}
	}
	if e := lengthOf(text, n, 'e', 'E'); e > 0 {
		n += e
		return digits(text, n+lengthOf(text, n, '+', '-'))
	}
	return n, true
}

// digits passes over the digits from n on; there must be at least one.
func digits(text []byte, n int) (end int, ok bool) {
	end = n
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return end, end > n
}

// lengthOf returns 1 if text has a or b at n, else 0.
func lengthOf(text []byte, n int, a, b byte) int {
	if n < len(text) && (text[n] == a || text[n] == b) {
		return 1
	}
	return 0
}
