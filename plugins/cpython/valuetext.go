// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// floatText is the shortest text of a number that reads as the number; hasPoint: it has a point
// or an exponent.
func floatText(bits uint64, hasPoint bool) string {
	f := math.Float64frombits(bits)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, _ := strings.Cut(text, "e")
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 16 {
		return text
	}
	if text = strconv.FormatFloat(f, 'f', -1, 64); hasPoint && !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// complexText is the text of a complex number.
func complexText(realBits, imaginaryBits uint64) string {
	imaginary := floatText(imaginaryBits, false)
	if realBits == 0 {
		return imaginary + "j"
	}
	if imaginary[0] != '-' {
		imaginary = "+" + imaginary
	}
	return "(" + floatText(realBits, false) + imaginary + "j)"
}

// quoteOf is the quotation mark for text with single and double ones.
func quoteOf(hasSingle, hasDouble bool) rune {
	if hasSingle && !hasDouble {
		return '"'
	}
	return '\''
}

// escapes are characters that have short forms.
var escapes = map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\\': `\\`}

// quotedText is text as the language writes it.
func quotedText(runes []rune) string {
	var hasSingle, hasDouble bool
	for _, r := range runes {
		hasSingle, hasDouble = hasSingle || r == '\'', hasDouble || r == '"'
	}
	quote := quoteOf(hasSingle, hasDouble)
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range runes {
		switch short := escapes[r]; {
		case short != "":
			b.WriteString(short)
		case r == quote:
			b.WriteString(`\` + string(r))
		case isPrintable(r):
			b.WriteRune(r)
		case r < 256:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// isPrintable reports whether a character stands for itself.
func isPrintable(r rune) bool {
	return (r < 0xd800 || r > 0xdfff) && r <= unicode.MaxRune && unicode.IsPrint(r)
}

// quotedData is bytes as the language writes them, without the prefix.
func quotedData(data []byte) string {
	var hasSingle, hasDouble bool
	for _, c := range data {
		hasSingle, hasDouble = hasSingle || c == '\'', hasDouble || c == '"'
	}
	quote := quoteOf(hasSingle, hasDouble)
	var b strings.Builder
	b.WriteRune(quote)
	for _, c := range data {
		switch short := escapes[rune(c)]; {
		case short != "":
			b.WriteString(short)
		case rune(c) == quote:
			b.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
