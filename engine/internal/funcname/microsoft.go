// SPDX-License-Identifier: Apache-2.0

package funcname

import "strings"

// This file reads what Microsoft's tools, and others for Windows, write in names.

// thunk begins the name of a function that adjusts its object, and goes on in another one.
const thunk = "[thunk]: "

// tags are the keywords before the names of types.
var tags = []string{"class ", "struct ", "union ", "enum "}

// withoutTag returns a type without the keyword before it.
func withoutTag(kind string) string {
	for _, tag := range tags {
		if rest, ok := strings.CutPrefix(kind, tag); ok {
			return rest
		}
	}
	return kind
}

// quoteEnd returns the index after the text that begins with a backquote at an index; the end of the
// name where it is not closed. It may have other quoted texts in it, whose first quote may be
// a single one behind a space.
func quoteEnd(s string, start int) int {
	depth := 0
	for i := start; i < len(s); i++ {
		switch {
		case s[i] == '`', s[i] == '\'' && s[i-1] == ' ':
			depth++
		case s[i] == '\'':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// backquoted reads a function that the rest is in, or something without an identifier.
func (s *scanner) backquoted() {
	end := quoteEnd(s.text, s.offset)
	inner := strings.TrimSuffix(s.text[s.offset+1:end], "'")
	s.offset = end
	switch {
	case len(s.part) > 0 || s.isOver: // by what a thunk adjusts
	case isScopeNumber(s.rest()) && s.depth < maxQualified:
		s.parts = append(s.parts, partsOf(inner, s.depth+1, s.folds)...)
	default:
		s.part = append(s.part, s.withoutIdentifier(inner)...)
	}
}

// isScopeNumber reports whether a name goes on with the number of a scope in a function.
func isScopeNumber(rest string) bool {
	rest, ok := strings.CutPrefix(rest, "::`")
	number, _, isClosed := strings.Cut(rest, "'")
	return ok && isClosed && IsNumber(number)
}

// withoutIdentifier returns the text for something without an identifier. One that is for another
// thing has the path of it, and numbers of scopes have no text.
func (s *scanner) withoutIdentifier(inner string) string {
	before, of, isFor := strings.Cut(inner, " for ")
	if isFor && len(of) > 1 && (of[0] == '\'' || of[0] == '`') && s.depth < maxQualified {
		return "`" + before + " for '" + join(partsOf(of[1:len(of)-1], s.depth+1, s.folds)) + "''"
	}
	return quotedText(inner, '`')
}

// isScope reports whether a part of a path is a scope in a function, as PDB files have it: __l2.
func isScope(part string) bool {
	number, ok := strings.CutPrefix(part, "__l")
	return ok && IsNumber(number)
}

// isKeyOfSpace reports whether a part of a path tells a namespace without a name from others, as PDB
// files and references to it have it: ?A0x1234abcd, 0x1234abcd.
func isKeyOfSpace(part string) bool {
	digits, ok := strings.CutPrefix(strings.TrimPrefix(part, "?A"), "0x")
	return ok && len(digits) == 8 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}
