// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoted bounds a quote of a plugin in a message, in bytes.
const maxQuoted = 300

// clip cuts text from a plugin to a length that fits a message.
func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// several has errors in one line.
type several []error

// Error implements error.
func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the errors, for errors.Is and errors.As.
func (s several) Unwrap() []error { return s }

// printable escapes control characters. Text from a plugin goes through it before it is
// shown.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
