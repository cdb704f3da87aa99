// SPDX-License-Identifier: Apache-2.0

package llvmir

import "strings"

// tokenKind is the kind of a token of the assembly language.
type tokenKind uint8

const (
	endToken    tokenKind = iota
	wordToken             // define, i32, DW_TAG_member, true
	numberToken           // 12, -1, 1.5e+00, 0xH3C00
	stringToken           // "text"
	localToken            // %x, %"x y", %12
	globalToken           // @x, @"x y", @12
	nodeToken             // !12
	nameToken             // !dbg, !DIFile, !llvm.dbg.cu
	metaString            // !"text"
	bangToken             // the ! of !{
	hashToken             // #0, #dbg_value
	labelToken            // "entry:", and "name:" before a field
	otherToken            // punctuation, one byte
)

// token is the text from start to end.
type token struct {
	kind       tokenKind
	start, end int
}

// lexer reads tokens, which blanks and comments separate. It never fails: a byte that
// begins nothing is a token of its own.
type lexer struct {
	data []byte
	pos  int
}

// Classes of bytes.
const (
	nameByte  = 1 << iota // of names and labels
	digitByte             // 0 to 9
	blankByte
)

var classes = func() (c [256]uint8) {
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-$._" {
		c[r] |= nameByte
	}
	for _, r := range "0123456789" {
		c[r] |= digitByte
	}
	for _, r := range " \t\r\n\v\f\x00" {
		c[r] |= blankByte
	}
	return c
}()

// next reads a token; at the end of the text it is of kind endToken.
func (l *lexer) next() token {
	l.skipBlanks()
	start := l.pos
	if start >= len(l.data) {
		return token{endToken, start, start}
	}
	c := l.data[start]
	switch {
	case c == 'c' && l.byteAt(start+1) == '"':
		l.pos = start + 1
		l.skipString()
		return token{stringToken, start, l.pos}
	case classes[c]&nameByte != 0:
		return l.word(start)
	case c == '"':
		l.skipString()
		if l.byteAt(l.pos) == ':' {
			l.pos++
			return token{labelToken, start, l.pos - 1}
		}
		return token{stringToken, start, l.pos}
	case c == '%':
		return l.prefixed(start, localToken)
	case c == '@':
		return l.prefixed(start, globalToken)
	case c == '#':
		return l.prefixed(start, hashToken)
	case c == '!':
		return l.metadata(start)
	}
	l.pos = start + 1
	return token{otherToken, start, l.pos}
}

func (l *lexer) byteAt(pos int) byte {
	if pos < len(l.data) {
		return l.data[pos]
	}
	return 0
}

func (l *lexer) skipBlanks() {
	for l.pos < len(l.data) {
		c := l.data[l.pos]
		switch {
		case classes[c]&blankByte != 0:
			l.pos++
		case c == ';':
			l.skipLine()
		default:
			return
		}
	}
}

// skipLine skips the rest of the line.
func (l *lexer) skipLine() {
	for l.pos < len(l.data) && l.data[l.pos] != '\n' {
		l.pos++
	}
}

// skipString skips a string in quotes. A string without an end is the rest of its line: the
// next line can be read then.
func (l *lexer) skipString() {
	start := l.pos
	for l.pos++; l.pos < len(l.data); l.pos++ {
		if l.data[l.pos] == '"' {
			l.pos++
			return
		}
	}
	l.pos = start
	l.skipLine()
}

func (l *lexer) run(class uint8) {
	for l.pos < len(l.data) && classes[l.data[l.pos]]&class != 0 {
		l.pos++
	}
}

// word reads a word, a number or a label.
func (l *lexer) word(start int) token {
	l.run(nameByte)
	if l.byteAt(l.pos) == ':' {
		l.pos++
		return token{labelToken, start, l.pos - 1}
	}
	digit := start
	if l.data[start] == '-' {
		digit++
	}
	if classes[l.byteAt(digit)]&digitByte == 0 {
		return token{wordToken, start, l.pos}
	}
	// The sign of an exponent is no byte of names.
	if last := l.data[l.pos-1]; l.byteAt(l.pos) == '+' && (last == 'e' || last == 'E') {
		l.pos++
		l.run(digitByte)
	}
	return token{numberToken, start, l.pos}
}

// prefixed reads a name with its prefix; a prefix alone is punctuation.
func (l *lexer) prefixed(start int, kind tokenKind) token {
	l.pos = start + 1
	switch {
	case l.byteAt(l.pos) == '"':
		l.skipString()
	case classes[l.byteAt(l.pos)]&nameByte != 0:
		l.run(nameByte)
	default:
		kind = otherToken
	}
	return token{kind, start, l.pos}
}

func (l *lexer) metadata(start int) token {
	l.pos = start + 1
	switch c := l.byteAt(l.pos); {
	case c == '"':
		l.skipString()
		return token{metaString, start, l.pos}
	case classes[c]&digitByte != 0:
		l.run(digitByte)
		return token{nodeToken, start, l.pos}
	case classes[c]&nameByte != 0, c == '\\':
		for l.pos < len(l.data) && (classes[l.data[l.pos]]&nameByte != 0 || l.data[l.pos] == '\\') {
			l.pos++
		}
		return token{nameToken, start, l.pos}
	}
	return token{bangToken, start, l.pos}
}

// peek returns the next token without reading it.
func (l *lexer) peek() token {
	pos := l.pos
	t := l.next()
	l.pos = pos
	return t
}

// text is the text of a token.
func (l *lexer) text(t token) []byte { return l.data[t.start:t.end] }

// is reports whether a token is the byte c.
func (l *lexer) is(t token, c byte) bool {
	return t.kind == otherToken && l.data[t.start] == c
}

// beginsLine reports whether a token is the first on its line, without a blank before it.
func (l *lexer) beginsLine(t token) bool { return t.start == 0 || l.data[t.start-1] == '\n' }

// unquote returns a name or string without its prefix and quotes, with its escapes (\xx,
// \\) replaced.
func unquote(text []byte) string {
	for _, prefix := range "c!%@#" {
		if len(text) > 1 && rune(text[0]) == prefix && (prefix != 'c' || text[1] == '"') {
			text = text[1:]
			break
		}
	}
	quoted := len(text) > 0 && text[0] == '"'
	if quoted {
		text = text[1:]
		if n := len(text); n > 0 && text[n-1] == '"' {
			text = text[:n-1]
		}
	}
	s := string(text)
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\\' {
				b.WriteByte('\\')
				i++
				continue
			}
			if i+2 < len(s) {
				high, ok := hexDigit(s[i+1])
				low, ok2 := hexDigit(s[i+2])
				if ok && ok2 {
					b.WriteByte(high<<4 | low)
					i += 2
					continue
				}
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
