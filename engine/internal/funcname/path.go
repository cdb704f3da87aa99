// SPDX-License-Identifier: Apache-2.0

package funcname

import (
	"strings"
	"unicode"
)

// The texts for things without a name, which each compiler writes in its own style.
const (
	Lambda       = "{lambda}"
	UnnamedType  = "{unnamed}"
	UnnamedSpace = "(anonymous namespace)"
)

// The tables of parts that are left out of names, or get one text. A change of an entry changes
// the signatures of crashes: it needs a new version of them.
var (
	// Braces are the texts for names in braces, by their beginning.
	Braces = []struct{ Begins, Is string }{
		{"lambda", Lambda}, {"unnamed", UnnamedType}, {"anonymous", UnnamedSpace},
		{"closure_env", ""}, {"closure", "{closure}"}, {"vtable.shim", ""}, {"shim", ""}, {"impl", "{impl}"},
	}

	// Unsaid are parts without information.
	Unsaid = map[string]bool{"{}": true, "_": true}

	// InlineSpaces are the inline namespaces of libraries, for a version of them; * stands for a
	// number.
	InlineSpaces = map[string][]string{
		"std":  {"__cxx11", "__cxx1998", "__debug", "__ndk*", "__Cr", "__fs", "_V*", "__*"},
		"absl": {"lts_*"},
		"fmt":  {"v*"},
	}

	// DLambdas begin the names that compilers of D give to functions without one.
	DLambdas = []string{"__lambda", "__funcliteral", "__dgliteral", "__foreachbody"}
)

// Parts returns the parts of a function's path without arguments, parameters, inline namespaces
// and hashes. cut removes suffixes from the last part.
func Parts(function string, cut func(last string) string) []string {
	list := path(function, false, cut)
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].text
	}
	return out
}

// path returns the parts of a function's path that tell something.
func path(function string, folds bool, cut func(last string) string) []part {
	parts := partsOf(function, 0, folds)
	out := parts[:0]
	for i, p := range parts {
		if i == len(parts)-1 {
			p.text = cut(p.text)
		}
		if isKeyOfSpace(p.text) {
			p.text = UnnamedSpace
		}
		if strings.HasPrefix(p.text, "$_") || strings.HasPrefix(p.text, "_GLOBAL__N_") {
			p.text = map[byte]string{'$': UnnamedType, '_': UnnamedSpace}[p.text[0]]
		}
		switch {
		case p.text == "" || IsNumber(p.text) || Unsaid[p.text]:
		case i < len(parts)-1 && isScope(p.text): // in a function
		case isHash(p.text) && i == len(parts)-1 && i > 0:
		case len(out) > 0 && isInline(out[0].text, p.text):
		case len(out) > 0 && isUnnamed(out[len(out)-1].text) && isInvocation(p.text):
			out[len(out)-1] = part{text: Lambda} // a lambda's operator, and its caller
		default:
			out = append(out, p)
		}
	}
	return out
}

// isInline reports whether a namespace is an inline one, for a version of a library.
func isInline(library, part string) bool {
	for _, v := range InlineSpaces[library] {
		if part == v || strings.HasSuffix(v, "*") && strings.HasPrefix(part, v[:len(v)-1]) && IsNumber(part[len(v)-1:]) {
			return true
		}
	}
	return false
}

func isUnnamed(part string) bool { return part == Lambda || part == UnnamedType }

// isInvocation reports whether a part is the operator of a lambda, or a function that compilers
// make for a pointer to it.
func isInvocation(part string) bool {
	return part == "operator()" || part == "_FUN" || part == "__invoke" || part == Lambda || strings.HasPrefix(part, "operator ")
}

// isHash reports whether a part is the hash that ends a legacy name of Rust.
func isHash(part string) bool {
	return len(part) == 17 && part[0] == 'h' && strings.Trim(part[1:], "0123456789abcdef") == ""
}

// IsNumber reports whether a text is a decimal number.
func IsNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Printable replaces characters that would not be in one line.
func Printable(r rune) rune {
	if r == unicode.ReplacementChar || unicode.IsControl(r) {
		return '?'
	}
	return r
}

// IsGo reports whether a function is a Go function. A dot in its name alone does not tell: Go
// has dots between packages and functions, but suffixes of other compilers begin with them too.
func IsGo(function, file string) bool {
	return strings.HasSuffix(file, ".go") || strings.Contains(function, ".(*") || strings.HasPrefix(function, "runtime.")
}

// FoldBrackets replaces the type arguments of a name of Go by a text.
func FoldBrackets(s, text string) string {
	var out []byte
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[':
			if depth == 0 {
				out = append(out, text...)
			}
			depth++
		case c == ']' && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	return string(out)
}
