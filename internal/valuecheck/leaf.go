// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// judgeLeaf reports whether the text of one of our values equals a debugger's
// value without parts.
func judgeLeaf(n *Node, text string) bool {
	data, err := hex.DecodeString(n.Bytes)
	if err != nil || len(data) == 0 {
		return sameText(n.Text, text)
	}
	switch n.Code {
	case "int", "char", "range":
		return isInteger(n, data, text)
	case "bool":
		return isBool(data, text)
	case "flt":
		return isFloat(data, n.Text, text)
	case "complex":
		return isComplex(data, text)
	case "enum", "flags":
		return isEnum(n, data, text)
	case "ptr", "ref", "rvalue_ref":
		return isPointer(n, data, text)
	case "text":
		return isText(n, data, text)
	case "methodptr":
		return isMethod(n, data, text)
	}
	return sameText(n.Text, text)
}

// integer returns the number in little-endian bytes.
func integer(data []byte, bits int, signed bool) *big.Int {
	reversed := make([]byte, len(data))
	for i, b := range data {
		reversed[len(data)-1-i] = b
	}
	x := new(big.Int).SetBytes(reversed)
	if bits == 0 {
		bits = 8 * len(data)
	}
	one := big.NewInt(1)
	x.And(x, new(big.Int).Sub(new(big.Int).Lsh(one, uint(bits)), one))
	if signed && x.Bit(bits-1) == 1 {
		x.Sub(x, new(big.Int).Lsh(one, uint(bits)))
	}
	return x
}

// isInteger compares a number, or a character with its number: 97 'a'.
func isInteger(n *Node, data []byte, text string) bool {
	word, character, _ := strings.Cut(text, " ")
	got, ok := new(big.Int).SetString(word, 0)
	if !ok || got.Cmp(integer(data, n.Bits, n.Signed)) != 0 {
		return false
	}
	_, theirs, _ := strings.Cut(n.Text, " ")
	return character == "" || theirs == "" || sameCharacter(theirs, character)
}

// sameCharacter compares two literals of characters, escaped in any style.
func sameCharacter(a, b string) bool {
	if hex, ok := strings.CutPrefix(a, `'\u{`); ok { // Rust's
		if x, err := strconv.ParseUint(strings.TrimSuffix(hex, "}'"), 16, 32); err == nil && unicode.IsPrint(rune(x)) {
			a = "'" + string(rune(x)) + "'"
		}
	}
	x, okX := unquote(strings.TrimLeft(a, "uUL8"), '\'')
	y, okY := unquote(strings.TrimLeft(b, "uUL8"), '\'')
	return okX && okY && string(x) == string(y)
}

func isBool(data []byte, text string) bool {
	switch data[0] {
	case 0:
		return text == "false"
	case 1:
		return text == "true"
	}
	return text == strconv.Itoa(int(data[0]))
}

func isFloat(data []byte, theirs, text string) bool {
	switch {
	case strings.Contains(text, "nan") || strings.Contains(strings.ToLower(theirs), "nan"):
		return sameNaN(theirs, text)
	case len(data) == 4:
		f, err := strconv.ParseFloat(text, 32)
		return err == nil && math.Float32bits(float32(f)) == binary.LittleEndian.Uint32(data)
	case len(data) == 8:
		f, err := strconv.ParseFloat(text, 64)
		return err == nil && math.Float64bits(f) == binary.LittleEndian.Uint64(data)
	case len(data) == 16 || len(data) == 12:
		return isExtended(data, text)
	}
	return theirs == text
}

// sameNaN compares the signs of two NaNs, and their payloads where both have
// them.
func sameNaN(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.HasPrefix(a, "-") != strings.HasPrefix(b, "-") || !strings.Contains(a, "nan") || !strings.Contains(b, "nan") {
		return false
	}
	_, holdsA, okA := strings.Cut(a, "(")
	_, holdsB, okB := strings.Cut(b, "(")
	return !okA || !okB || holdsA == holdsB
}

// isExtended compares a number of x87's 80 bits.
func isExtended(data []byte, text string) bool {
	exponent := int(binary.LittleEndian.Uint16(data[8:]))
	mantissa := binary.LittleEndian.Uint64(data)
	if exponent&0x7fff == 0x7fff {
		return text == map[bool]string{false: "inf", true: "-inf"}[exponent>>15 == 1]
	}
	want := new(big.Float).SetPrec(64).SetUint64(mantissa)
	want.SetMantExp(want, max(exponent&0x7fff, 1)-16383-63)
	if exponent>>15 == 1 {
		want.Neg(want)
	}
	got, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven)
	return err == nil && got.Cmp(want) == 0 && got.Signbit() == want.Signbit()
}

// isComplex compares complex numbers: 1.5 + -2.5i and 1.5 - 2.5i, bare or in
// parentheses.
func isComplex(data []byte, text string) bool {
	text = strings.Trim(text, "()")
	half := len(data) / 2
	if !strings.HasSuffix(text, "i") {
		return false
	}
	text = strings.ReplaceAll(strings.TrimSuffix(text, "i"), " ", "")
	for i := 1; i < len(text); i++ {
		if (text[i] == '+' || text[i] == '-') && text[i-1] != 'e' && text[i-1] != 'E' {
			imaginary := strings.TrimPrefix(text[i:], "+")
			return isFloat(data[:half], "", text[:i]) && isFloat(data[half:], "", imaginary)
		}
	}
	return false
}

// isEnum compares names without their qualifiers, or numbers.
func isEnum(n *Node, data []byte, text string) bool {
	if unqualified(n.Text) == unqualified(text) {
		return true
	}
	got, ok := new(big.Int).SetString(text, 0)
	return ok && isNumber(n.Text) && got.Cmp(integer(data, n.Bits, n.Signed)) == 0
}

func isNumber(text string) bool {
	_, ok := new(big.Int).SetString(text, 0)
	return ok || strings.HasPrefix(text, "(unknown: ")
}

// unqualified removes the scopes from the names of a set of enumerators.
func unqualified(text string) string {
	parts := strings.Split(strings.Trim(text, "()"), " | ")
	for i, p := range parts {
		if j := strings.LastIndex(p, "::"); j >= 0 {
			parts[i] = p[j+2:]
		}
		if j := strings.LastIndex(parts[i], "."); j >= 0 {
			parts[i] = parts[i][j+1:]
		}
	}
	return strings.Join(parts, " | ")
}

// isPointer compares addresses, and the text that is there where both print one.
func isPointer(n *Node, data []byte, text string) bool {
	word, rest, _ := strings.Cut(strings.TrimPrefix(text, "@"), " ")
	if strings.HasPrefix(n.Code, "r") {
		word = strings.TrimSuffix(word, ":")
	}
	got, ok := new(big.Int).SetString(word, 0)
	if !ok || got.Cmp(integer(data, 0, false)) != 0 {
		return false
	}
	theirs, ours := literal(n.Text), literal(rest)
	return theirs == "" || ours == "" || sameLiteral(theirs, ours)
}

// isMethod compares pointers to member functions (Itanium C++ ABI, 2.3): an address,
// or the offset of a virtual function in its table and one.
func isMethod(n *Node, data []byte, text string) bool {
	pointer := binary.LittleEndian.Uint64(data)
	switch {
	case pointer == 0:
		return text == "NULL" || text == "0x0"
	case pointer&1 != 0:
		return text == n.Text || strings.HasPrefix(text, fmt.Sprintf("&virtual table offset %d", pointer-1))
	}
	if _, rest, ok := strings.Cut(text, ")) 0x"); ok {
		text = "0x" + rest // behind the type, in gdb's style
	}
	return isPointer(n, data[:8], text)
}

// literal returns a text from its first quotation mark on.
func literal(text string) string {
	if i := strings.IndexByte(text, '"'); i >= 0 {
		return text[i:]
	}
	return ""
}

// incomplete is gdb's mark behind a text whose last bytes are no whole character.
const incomplete = ", <incomplete sequence "

// sameLiteral compares two literals, however much of a text each shows. Before an
// incomplete character gdb may leave out a whole one: "\260", <incomplete sequence \373>
// is its text of the bytes b0 63 fb.
func sameLiteral(a, b string) bool {
	if theirs, end, isIncomplete := strings.Cut(strings.TrimSuffix(a, "..."), incomplete); isIncomplete {
		x, okX := unquote(theirs, '"')
		y, okY := unquote(`"`+strings.TrimSuffix(end, ">")+`"`, '"')
		ours, ok := unquote(strings.TrimSuffix(b, "..."), '"')
		return okX && okY && ok && len(x)+len(y) <= len(ours) && bytes.HasPrefix(ours, x) && bytes.Contains(ours[len(x):], y)
	}
	cutA, cutB := strings.HasSuffix(a, "..."), strings.HasSuffix(b, "...")
	x, okX := unquote(strings.TrimSuffix(a, "..."), '"')
	y, okY := unquote(strings.TrimSuffix(b, "..."), '"')
	switch {
	case !okX || !okY:
		return false
	case cutA || cutB:
		n := min(len(x), len(y))
		return n > 0 && string(x[:n]) == string(y[:n]) && (cutA || len(x) >= len(y)) && (cutB || len(y) >= len(x))
	}
	return string(x) == string(y)
}

// isText compares the characters of an array. Zeros at the end may be left out.
func isText(n *Node, data []byte, text string) bool {
	cut := strings.HasSuffix(text, "...")
	got, ok := unquote(strings.TrimLeft(strings.TrimSuffix(text, "..."), "uUL"), '"')
	if !ok {
		return false
	}
	if n.Width > 1 {
		return isWideText(n.Width, data, text)
	}
	if len(got) > len(data) || string(got) != string(data[:len(got)]) {
		return false
	}
	return cut || strings.Trim(string(data[len(got):]), "\x00") == ""
}

// isWideText compares the code units of an array of wide characters.
func isWideText(width int, data []byte, text string) bool {
	cut := strings.HasSuffix(text, "...")
	got, ok := unquoteWide(strings.TrimSuffix(strings.TrimLeft(text, "uUL"), "..."))
	if !ok {
		return false
	}
	if width == 2 {
		var units []rune
		for _, r := range got {
			if r1, r2 := utf16.EncodeRune(r); r > 0xffff {
				units = append(units, r1, r2)
			} else {
				units = append(units, r)
			}
		}
		got = units
	}
	for i := range len(data) / width {
		unit := integer(data[i*width:(i+1)*width], 0, false).Int64()
		switch {
		case i < len(got):
			if int64(uint32(got[i])) != unit {
				return false
			}
		case cut:
			return true
		case unit != 0:
			return false
		}
	}
	return len(got) <= len(data)/width
}

// unquoteWide reads a literal: the characters between quotation marks.
func unquoteWide(text string) (out []rune, ok bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return nil, false
	}
	for text = text[1 : len(text)-1]; text != ""; {
		if text[0] == '\\' && len(text) > 1 {
			r, n, ok := unescapeWide(text[1:])
			if !ok {
				return nil, false
			}
			out, text = append(out, r), text[1+n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		out, text = append(out, r), text[n:]
	}
	return out, true
}

// unescapeWide reads the characters after a backslash as one.
func unescapeWide(text string) (r rune, length int, ok bool) {
	if text[0] == 'u' || text[0] == 'U' {
		digits := map[byte]int{'u': 4, 'U': 8}[text[0]]
		if len(text) <= digits {
			return 0, 0, false
		}
		x, err := strconv.ParseUint(text[1:1+digits], 16, 32)
		return rune(uint32(x)), 1 + digits, err == nil
	}
	b, n, ok := unescape(text)
	if !ok || len(b) == 0 {
		return 0, 0, false
	}
	return rune(b[0]), n, true
}

// unquote reads a literal of C: the bytes between quotation marks.
func unquote(text string, mark byte) ([]byte, bool) {
	if len(text) < 2 || text[0] != mark || text[len(text)-1] != mark {
		return nil, false
	}
	text = text[1 : len(text)-1]
	var out []byte
	for len(text) > 0 {
		if text[0] != '\\' || len(text) == 1 {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		b, n, ok := unescape(text[1:])
		if !ok {
			return nil, false
		}
		out, text = append(out, b...), text[1+n:]
	}
	return out, true
}

// unescape reads the characters after a backslash.
func unescape(text string) (bytes []byte, length int, ok bool) {
	if i := strings.IndexByte("abfnrtve", text[0]); i >= 0 {
		return []byte{"\a\b\f\n\r\t\v\x1b"[i]}, 1, true
	}
	digits, base, prefix := 3, 8, 0
	switch text[0] {
	case 'x':
		digits, base, prefix = 2, 16, 1
	case 'u':
		digits, base, prefix = 4, 16, 1
	case 'U':
		digits, base, prefix = 8, 16, 1
	}
	end := prefix
	for end < len(text) && end < prefix+digits && strings.IndexByte("0123456789abcdefABCDEF"[:map[int]int{8: 8, 16: 22}[base]], text[end]) >= 0 {
		end++
	}
	if end == prefix {
		return []byte{text[0]}, 1, prefix == 0
	}
	x, err := strconv.ParseUint(text[prefix:end], base, 32)
	if err != nil {
		return nil, 0, false
	}
	if digits > 3 {
		return utf8.AppendRune(nil, rune(x)), end, true
	}
	return []byte{byte(x)}, end, x < 256
}

// sameText compares two texts of values other than numbers, except blanks.
func sameText(a, b string) bool {
	if literal(a) == a && literal(b) == b && a != "" {
		return sameLiteral(a, b)
	}
	return strings.Join(strings.Fields(a), "") == strings.Join(strings.Fields(b), "")
}

// shown returns a value of a debugger's in a line.
func (n *Node) shown() string {
	switch {
	case n.Optimized:
		return "<optimized out>"
	case n.Error != "":
		return "<" + n.Error + ">"
	case n.Text != "":
		return n.Text
	case n.Bytes != "":
		return "bytes " + n.Bytes
	}
	return fmt.Sprintf("{%d parts}", len(n.Children))
}
