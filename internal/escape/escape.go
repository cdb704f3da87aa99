// SPDX-License-Identifier: Apache-2.0

// Package escape makes text printable that comes from files and plugins, and so may
// be any bytes. A line break becomes a backslash and an n, and the escape character
// of a terminal's colours becomes \x1b.
package escape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text escapes the unprintable parts of a text as Go does in a string: control
// characters, line breaks and tabs among them, marks that change the direction of
// text, and bytes that are no UTF-8. Everything else, backslashes included, stays.
func Text(s string) string { return text(s, "") }

// Line is Text for a line with usual tabs, as in a source file. They stay.
func Line(s string) string { return text(s, "\t") }

// text is Text with further characters that stay.
func text(s, kept string) string {
	if IsPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) || strings.ContainsRune(kept, r):
			b.WriteString(s[i : i+size])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// ones has 1 in each byte.
const ones = 0x0101010101010101

// IsPlain reports whether a text has printable ASCII characters only, as nearly all
// texts: it needs no escapes.
func IsPlain[T string | []byte](s T) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 | uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// The highest bit of a byte is set, or will be where it is a control character or DEL.
		if (w|(w-' '*ones)|(w+ones))&(0x80*ones) != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// AppendJSON appends a value as JSON and a newline, indented by indent where that is not "". It has no escapes that
// only HTML needs; what Text escapes is escaped as JSON does, so that a terminal shows the report as it is and a reader
// gets the same text.
func AppendJSON(dst []byte, v any, indent string) ([]byte, error) {
	from := len(dst)
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if indent != "" {
		e.SetIndent("", indent)
	}
	err := e.Encode(v)
	return escapeJSON(b.Bytes(), from), err
}

// escapeJSON escapes the unprintable characters of JSON behind an offset. All are in strings; the encoder has
// escaped those below a blank.
func escapeJSON(text []byte, from int) []byte {
	next := bytes.IndexFunc(text[from:], isUnprintable)
	if next < 0 {
		return text
	}
	out := bytes.Clone(text[:from+next])
	for _, r := range string(text[from+next:]) {
		switch high, low := utf16.EncodeRune(r); {
		case !isUnprintable(r):
			out = utf8.AppendRune(out, r)
		case high != unicode.ReplacementChar:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// isUnprintable reports whether a character of JSON is none that is seen, and no blank or line break of its layout.
func isUnprintable(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
