// SPDX-License-Identifier: Apache-2.0

package dname

import (
	"fmt"
	"strconv"
	"strings"
)

// value reads a value that is an argument of a template: name is the name of its type, kind
// the first letter of the type.
func (p *parser) value(name string, kind byte) string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	anything := func() string { return p.value("", 0) }
	switch c := p.peek(0); {
	case p.take("n"):
		return "null"
	case p.take("N"):
		return "-" + p.integer(kind)
	case p.take("i"):
		return p.integer(kind)
	case isDigit(c):
		return p.integer(kind)
	case p.take("e"):
		return p.real()
	case p.take("c"):
		text := p.real() + "+"
		if !p.take("c") {
			return p.fail()
		}
		return text + p.real() + "i"
	case c == 'a' || c == 'w' || c == 'd':
		return p.text()
	case p.take("A"):
		if kind == 'H' {
			return "[" + p.list(p.number(), func() string { return anything() + ":" + anything() }) + "]"
		}
		return "[" + p.list(p.number(), anything) + "]"
	case p.take("S"):
		return p.bounded(name + "(" + p.list(p.number(), anything) + ")")
	case p.take("f"):
		if strings.HasPrefix(p.rest(), "_D") && p.isName(len("_D")) {
			return p.mangled()
		}
	}
	return p.fail()
}

// characters are the escapes of invisible characters by type: the prefix and the number of
// digits.
var characters = map[byte]struct {
	begins string
	digits int
}{'a': {`\x`, 2}, 'u': {`\u`, 4}, 'w': {`\U`, 8}}

// suffixes are the suffixes of integers, by the letter of their type.
var suffixes = map[byte]string{'h': "u", 't': "u", 'k': "u", 'l': "L", 'm': "uL"}

// integer reads a number, a character or a truth value.
func (p *parser) integer(kind byte) string {
	start := p.pos
	for isDigit(p.peek(0)) {
		p.pos++
	}
	digits := p.s[start:p.pos]
	if digits == "" {
		return p.fail()
	}
	c, isCharacter := characters[kind]
	if !isCharacter && kind != 'b' {
		return digits + suffixes[kind]
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case err != nil:
		return p.fail()
	case kind == 'b':
		return strconv.FormatBool(n != 0)
	case kind == 'a' && n >= 0x20 && n < 0x7f:
		return "'" + string(rune(n)) + "'"
	}
	return fmt.Sprintf("'%s%0*x'", c.begins, c.digits, n)
}

func isHex(c byte) bool { return isDigit(c) || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f' }

// real reads a number with a fraction.
func (p *parser) real() string {
	switch {
	case p.take("NAN"):
		return "NaN"
	case p.take("INF"):
		return "Inf"
	case p.take("NINF"):
		return "-Inf"
	}
	text := ""
	if p.take("N") {
		text = "-"
	}
	start := p.pos
	for isHex(p.peek(0)) {
		p.pos++
	}
	digits := p.s[start:p.pos]
	if digits == "" || !p.take("P") {
		return p.fail()
	}
	text += "0x" + digits[:1] + "." + digits[1:] + "p"
	if p.take("N") {
		text += "-"
	}
	start = p.pos
	for isDigit(p.peek(0)) {
		p.pos++
	}
	return text + p.s[start:p.pos]
}

// escapes are the escapes of bytes in a text.
var escapes = map[byte]string{'\t': `\t`, '\n': `\n`, '\r': `\r`, '\f': `\f`, '\v': `\v`}

// text reads the bytes of a text, which are hexadecimal.
func (p *parser) text() string {
	kind := p.s[p.pos]
	p.pos++
	n := p.number()
	if p.failed || !p.take("_") || n > (len(p.s)-p.pos)/2 {
		return p.fail()
	}
	var b strings.Builder
	b.WriteByte('"')
	for range n {
		digits := p.s[p.pos : p.pos+2]
		c, err := strconv.ParseUint(digits, 16, 8)
		if err != nil {
			return p.fail()
		}
		p.pos += 2
		switch e := escapes[byte(c)]; {
		case e != "":
			b.WriteString(e)
		case c >= 0x20 && c < 0x7f:
			b.WriteByte(byte(c))
		default:
			b.WriteString(`\x` + digits)
		}
	}
	b.WriteByte('"')
	if kind != 'a' {
		b.WriteByte(kind)
	}
	return b.String()
}
