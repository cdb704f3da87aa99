// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"unicode/utf8"
)

// checkIdentifier checks a name that people type and programs compare: printable
// ASCII without blanks, quotes, or the delimiters of text formats.
func checkIdentifier(field, s string) error {
	if s == "" {
		return fmt.Errorf("%s: empty, expected a name", field)
	}
	if len(s) > MaxName {
		return fmt.Errorf("%s: %d bytes, expected at most %d", field, len(s), MaxName)
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_' || c == '.' || c == '-' || c == '$':
		default:
			return fmt.Errorf("%s: %q, expected letters, digits and _ . - $", field, s)
		}
	}
	return nil
}

// checkText checks a text for people: UTF-8 of bounded length.
func checkText(field, s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%s: %d bytes, expected at most %d", field, len(s), most)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s: %q is not UTF-8", field, s[:min(len(s), 64)])
	}
	return nil
}

// checkTexts checks a list of texts.
func checkTexts(list string, texts []string) error {
	for i, s := range texts {
		if err := checkText("", s, MaxText); err != nil {
			return fmt.Errorf("%s[%d]%w", list, i, err)
		}
	}
	return nil
}
