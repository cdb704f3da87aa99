// SPDX-License-Identifier: Apache-2.0

package msvcname

import (
	"fmt"
	"strings"
)

const (
	// maxBytes is how many bytes of a literal with narrow characters its name has at most.
	maxBytes = 4 * 32
	// maxWide is how many bytes of a literal with wide characters its name has at most.
	maxWide = 64
)

// escapes are characters in names of literals that have a digit.
const escapes = ",/\\:. \n\t'-"

// controls are characters with a short form in a literal.
var controls = map[uint32]string{
	0: `\0`, '\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`, '\'': `\'`, '"': `\"`, '\\': `\\`,
}

// literal reads the name of a string.
func (r *reader) literal(string) node {
	kind := r.next()
	size := r.unsigned()
	if _, rest, ok := strings.Cut(r.rest, ended); ok { // the hash of the text
		r.rest = rest
	} else {
		r.bad()
	}
	var out strings.Builder
	var isCut bool
	switch {
	case size == 0:
		r.bad()
	case kind == '1':
		isCut = r.wide(&out, size)
	case kind == '0':
		isCut = r.narrow(&out, size)
	default:
		r.bad()
	}
	out.WriteByte('"')
	if isCut {
		out.WriteString("...")
	}
	return &text{s: out.String()}
}

// wide reads characters of two bytes. isCut is true where the name has only the first ones.
func (r *reader) wide(out *strings.Builder, size uint64) (isCut bool) {
	out.WriteString(`L"`)
	isCut = size > maxWide
	for r.more() {
		if size < 2 {
			r.bad()
			break
		}
		c := uint32(r.char())<<8 | uint32(r.char())
		if size != 2 || isCut { // else it is the null at the end
			writeChar(out, c)
		}
		size -= 2
	}
	return isCut
}

// narrow reads bytes of characters of one, two or four bytes, of which the name does not tell.
func (r *reader) narrow(out *strings.Builder, size uint64) (isCut bool) {
	var bytes []byte
	for r.more() {
		if len(bytes) >= maxBytes {
			r.bad()
			break
		}
		bytes = append(bytes, r.char())
	}
	isCut = size > uint64(len(bytes))
	width := charWidth(bytes, size)
	out.WriteString(map[int]string{1: `"`, 2: `u"`, 4: `U"`}[width])
	count := len(bytes) / width
	for i := range count {
		var c uint32
		for at := width - 1; at >= 0; at-- {
			c = c<<8 | uint32(bytes[i*width+at])
		}
		if i+1 < count || isCut {
			writeChar(out, c)
		}
	}
	return isCut
}

// charWidth guesses how many bytes a character has, by the nulls: at the end of a text that is whole,
// or anywhere.
func charWidth(bytes []byte, size uint64) int {
	switch {
	case size%2 == 1:
		return 1
	case size < 32:
		nulls := 0
		for nulls < len(bytes) && bytes[len(bytes)-1-nulls] == 0 {
			nulls++
		}
		switch {
		case nulls >= 4 && size%4 == 0:
			return 4
		case nulls >= 2:
			return 2
		}
		return 1
	}
	nulls := 0
	for _, b := range bytes {
		if b == 0 {
			nulls++
		}
	}
	switch {
	case nulls >= 2*len(bytes)/3 && size%4 == 0:
		return 4
	case nulls >= len(bytes)/3:
		return 2
	}
	return 1
}

// char reads a byte of a literal.
func (r *reader) char() byte {
	c := r.next()
	if c != '?' {
		return c
	}
	switch c = r.next(); {
	case c == '$':
		return r.nibble()<<4 | r.nibble()
	case isDigit(c):
		return escapes[c-'0']
	case c >= 'a' && c <= 'z':
		return c - 'a' + 0xe1
	case c >= 'A' && c <= 'Z':
		return c - 'A' + 0xc1
	}
	r.bad()
	return 0
}

func (r *reader) nibble() byte {
	c := r.next()
	if c < 'A' || c > 'P' {
		r.bad()
	}
	return c - 'A'
}

// writeChar writes a character as a program has it in a literal.
func writeChar(out *strings.Builder, c uint32) {
	s, ok := controls[c]
	switch {
	case ok:
		out.WriteString(s)
	case c > 0x1f && c < 0x7f:
		out.WriteByte(byte(c))
	default:
		digits := fmt.Sprintf("%X", c)
		out.WriteString(`\x` + strings.Repeat("0", len(digits)%2) + digits)
	}
}
