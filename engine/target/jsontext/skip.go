// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"strings"
	"unicode/utf8"
)

// passedBytes is how much of a text is skipped between two calls of Passed.
const passedBytes = 8 << 20

// Skip reads a value of any kind and forgets it.
func (r *Reader) Skip() error {
	if r.stream == nil {
		if s := r.skipper(); s.value() {
			r.At = s.at
			return nil
		}
	}
	// What is wrong, and where, is found once more, and said.
	return r.skipSlowly()
}

// skipper passes over what is read next.
func (r *Reader) skipper() skipper {
	return skipper{data: r.Data, at: r.At, depth: r.depth, passed: r.Passed, told: r.At}
}

// skipSlowly is Skip for a text that is not in memory, or that is wrong.
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

// A skipper passes over a value of a text that is in memory, without recursion.
type skipper struct {
	data   []byte
	at     int
	depth  int // of the objects and arrays that the value is in
	passed func(at int)
	told   int // where passed was called

	isPlain bool // the last string means the bytes that it has
}

// value passes over a value; false where it is none.
func (s *skipper) value() bool {
	var isObject [MaxDepth + 1]bool // by depth
	outer := s.depth
	for {
		switch c := s.next(); c {
		case '{', '[':
			if s.depth++; s.depth > MaxDepth {
				return false
			}
			s.at++
			isObject[s.depth] = c == '{'
			if s.next() != c+2 { // in ASCII the end stands two behind the beginning
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
				s.at++
				if isObject[s.depth] && !s.name() {
					return false
				}
				more = true
			case c == '}' && isObject[s.depth], c == ']' && !isObject[s.depth]:
				s.at++
				s.depth--
			default:
				return false
			}
		}
	}
}

// next skips white space and returns the byte behind it; 0 at the end.
func (s *skipper) next() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		case ',', '}', ']':
			s.tell(s.at)
			return c
		default:
			return c
		}
	}
	return 0
}

// tell says from time to time how far it is.
func (s *skipper) tell(at int) {
	if s.passed != nil && at-s.told >= passedBytes {
		s.passed(at)
		s.told = at
	}
}

// name passes over a member's name and the colon.
func (s *skipper) name() bool {
	if s.next() != '"' || !s.text() || s.next() != ':' {
		return false
	}
	s.at++
	return true
}

// text passes over a string.
func (s *skipper) text() bool {
	s.isPlain = true
	for n := s.at + 1; n < len(s.data); {
		s.tell(n)
		window := s.data[:min(len(s.data), n+passedBytes)]
		if n = plainTo(window, n); n == len(window) {
			continue
		}
		switch c := s.data[n]; {
		case c == '"':
			s.at = n + 1
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

// escapeBytes is how many bytes an escape has that a text begins with; 0: it is none
// (RFC 8259, 7).
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

// scalar passes over a value that begins with c and is no object and no array.
func (s *skipper) scalar(c byte) bool {
	word := ""
	switch {
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		size, ok := numberBytes(s.data[s.at:])
		s.at += size
		return ok
	case c == 't':
		word = "true"
	case c == 'f':
		word = "false"
	case c == 'n':
		word = "null"
	}
	if word == "" || len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// numberBytes is how many bytes the number has that a text begins with (RFC 8259, 6);
// where it is none, the text has no digit behind them.
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

// digits passes over the digits from n on, of which there must be some.
func digits(text []byte, n int) (end int, ok bool) {
	end = n
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return end, end > n
}

// lengthOf is 1 where a or b stands at n, else 0.
func lengthOf(text []byte, n int, a, b byte) int {
	if n < len(text) && (text[n] == a || text[n] == b) {
		return 1
	}
	return 0
}
