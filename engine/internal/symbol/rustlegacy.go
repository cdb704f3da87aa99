// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// hashMark begins the last part of a name of Rust's legacy mangling, a hash of hashDigits. A name
// is otherwise mangled like C++.
const (
	hashMark   = "::h"
	hashDigits = 16
)

// cutHash returns a name without its hash; ok is false where it has none.
func cutHash(text string) (name string, ok bool) {
	end := len(text) - len(hashMark) - hashDigits
	if end < 0 || !strings.HasPrefix(text[end:], hashMark) || strings.Trim(text[end+len(hashMark):], "0123456789abcdef") != "" {
		return "", false
	}
	return text[:end], true
}

// legacyEscapes are the escapes of Rust's legacy mangling, by the text between dollar
// signs.
var legacyEscapes = map[string]string{
	"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}

// demangleLegacyRust demangles a name of Rust's legacy mangling, without its hash. The
// library is told to read it as C++: read as Rust it loses the first underscore of
// identifiers that begin with one, and the suffixes of clones (docs/upstream.md).
func demangleLegacyRust(name string, style demangle.Option) (string, bool) {
	if !strings.HasPrefix(name, "_ZN") || !strings.Contains(name, "17h") {
		return "", false
	}
	suffix := ""
	if i := strings.Index(name, "E."); i >= 0 { // a clone
		if style == demangle.LLVMStyle {
			suffix = " (" + name[i+1:] + ")"
		}
		name = name[:i+1]
	}
	text, ok := read(name, style)
	if !ok {
		return "", false
	}
	text, ok = cutHash(text)
	if !ok {
		return "", false
	}
	parts := strings.Split(text, "::")
	for i, part := range parts {
		parts[i] = unescapeLegacy(part)
	}
	return strings.Join(parts, "::") + suffix, true
}

// unescapeLegacy replaces the escapes in an identifier. An identifier that begins with an
// escape has an underscore before it.
func unescapeLegacy(part string) string {
	if strings.HasPrefix(part, "_$") {
		part = part[1:]
	}
	if !strings.ContainsAny(part, "$.") {
		return part
	}
	var b strings.Builder
	for part != "" {
		if rest, ok := strings.CutPrefix(part, ".."); ok {
			b.WriteString("::")
			part = rest
			continue
		}
		if part[0] == '$' {
			if escape, rest, ok := strings.Cut(part[1:], "$"); ok {
				if text, ok := legacyEscape(escape); ok {
					b.WriteString(text)
					part = rest
					continue
				}
			}
		}
		b.WriteByte(part[0])
		part = part[1:]
	}
	return b.String()
}

// legacyEscape returns the character of an escape: $LT$, or $u7b$ by its number.
func legacyEscape(name string) (string, bool) {
	if text, ok := legacyEscapes[name]; ok {
		return text, true
	}
	digits, ok := strings.CutPrefix(name, "u")
	if !ok {
		return "", false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n < ' ' || n == 0x7f || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", false
	}
	return string(rune(n)), true
}
