// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"math"
)

// fields reads a line from left to right. Fields are separated by one or more blanks, as in
// Breakpad's own reader.
type fields []byte

// next reads a field; it is empty at the end of the line.
func (l *fields) next() []byte {
	s := *l
	i := 0
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	start := i
	for i < len(s) && !isBlank(s[i]) {
		i++
	}
	*l = s[i:]
	return s[start:i]
}

// rest returns the rest of the line, without blanks around it.
func (l *fields) rest() []byte {
	s := bytes.TrimFunc(*l, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' })
	*l = nil
	return s
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// hex reads a hexadecimal number of at most 64 bits.
func (l *fields) hex() (uint64, bool) { return parseHex(l.next()) }

func parseHex(s []byte) (v uint64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	for _, c := range s {
		d := hexDigit[c]
		if d < 0 || v>>60 != 0 {
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

// hexDigit is the value of a digit; -1: it is none. The document has lower case only;
// producers of Windows files write upper case too.
var hexDigit = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range int8(10) {
		t['0'+i] = i
	}
	for i := range int8(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()

// span reads an address and a size. The end must not lie beyond 2^64.
func (l *fields) span() (start, end uint64, ok bool) {
	start, ok = l.hex()
	size, has := l.hex()
	return start, start + size, ok && has && size <= ^start
}

// decimal reads a number of at most 31 bits: of a line, a file, an origin.
func (l *fields) decimal() (int, bool) {
	s := l.next()
	if len(s) == 0 {
		return 0, false
	}
	v := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + int(c-'0'); v > math.MaxInt32 {
			return 0, false
		}
	}
	return v, true
}

// noFile is the number of the file of an artificial function, which has none.
const noFile = -1

// fileNumber is decimal, or -1, which dump_syms wrote for functions without a file.
func (l *fields) fileNumber() (int, bool) {
	if after, ok := bytes.CutPrefix(bytes.TrimLeft(*l, " \t"), []byte("-1")); ok && (len(after) == 0 || isBlank(after[0])) {
		*l = after
		return noFile, true
	}
	return l.decimal()
}

// isMultiple reads an "m", which means that several symbols have this code.
func (l *fields) isMultiple() bool {
	ahead := *l
	if s := ahead.next(); len(s) != 1 || s[0] != 'm' {
		return false
	}
	*l = ahead
	return true
}
