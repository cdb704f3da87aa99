// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"unicode"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// maxName bounds how much of a name is read.
const maxName = 1 << 16

// name is a function's name without the parts that compilers, builds and addresses change.
type name struct {
	// plain is the name in tables, with the underscores of reserved names.
	plain string
	// shown is the name in a signature.
	shown string
}

// nameOf returns a function's name as signatures have it: without parameters, template and
// generic arguments, the suffixes and numbers of compilers, symbol versions, hashes and inline
// namespaces. file is the source file of the function, which tells names of Go from names of C;
// "" where it is not known. The result is empty where nothing is left. isFirst asks for the rules of
// the first version.
func nameOf(function, file string, isFirst bool) name {
	if len(function) > maxName {
		function = function[:maxName]
	}
	function = strings.Map(printable, strings.TrimSpace(function))
	if isGo(function, file) {
		n := goName(function)
		return name{n, n}
	}
	if !isFirst && strings.HasSuffix(file, dFile) {
		n := dName(function)
		return name{n, n}
	}
	if strings.HasPrefix(function, "-[") || strings.HasPrefix(function, "+[") {
		return name{function, function} // Objective-C has nothing to leave out
	}
	if symbol.IsMangled(function) {
		function = symbol.Demangle(function)
	}
	parts := pathOf(symbol.StripVersion(function), isFirst)
	if len(parts) != 1 {
		n := strings.Join(parts, "::")
		return name{n, n}
	}
	n := strings.TrimPrefix(parts[0], "__GI_") // glibc's own calls of its exported functions
	for _, p := range interceptors {
		n = strings.TrimPrefix(n, p)
	}
	return name{n, cName(n)}
}

// printable replaces characters that would not be in one line.
func printable(r rune) rune {
	if r == unicode.ReplacementChar || unicode.IsControl(r) {
		return '?'
	}
	return r
}

// pathOf returns the parts of a name, before tables are applied to them.
func pathOf(function string, isFirst bool) []string {
	parts := partsOf(function, 0)
	out := parts[:0]
	for i, p := range parts {
		if i == len(parts)-1 {
			p = cutSuffixes(p)
			if !isFirst {
				p = cutNewSuffixes(p)
			}
		}
		if strings.HasPrefix(p, "$_") || strings.HasPrefix(p, "_GLOBAL__N_") {
			p = map[byte]string{'$': unnamedType, '_': unnamedSpace}[p[0]]
		}
		switch {
		case p == "" || isNumber(p) || unsaid[p]:
		case isHash(p) && i == len(parts)-1 && i > 0:
		case len(out) > 0 && isInline(out[0], p):
		case len(out) > 0 && isUnnamed(out[len(out)-1]) && isInvocation(p):
			out[len(out)-1] = lambda // a lambda's operator, and its caller
		default:
			out = append(out, p)
		}
	}
	if len(out) > 1 && out[0] == "std" && abbreviations[out[1]] != "" {
		out[1] = abbreviations[out[1]]
	}
	return out
}

// isInline reports whether a namespace is an inline one, for a version of a library.
func isInline(library, part string) bool {
	for _, v := range inlineSpaces[library] {
		if part == v || strings.HasSuffix(v, "*") && strings.HasPrefix(part, v[:len(v)-1]) && isNumber(part[len(v)-1:]) {
			return true
		}
	}
	return false
}

func isUnnamed(part string) bool { return part == lambda || part == unnamedType }

// isInvocation reports whether a part is the operator of a lambda, or a function that compilers
// make for a pointer to it.
func isInvocation(part string) bool {
	return part == "operator()" || part == "_FUN" || part == "__invoke" || part == lambda || strings.HasPrefix(part, "operator ")
}

// isHash reports whether a part is the hash that ends a legacy name of Rust.
func isHash(part string) bool {
	return len(part) == 17 && part[0] == 'h' && strings.Trim(part[1:], "0123456789abcdef") == ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// cutSuffixes removes from a name the suffixes of compilers and linkers: words that begin with
// a dot, and their numbers.
func cutSuffixes(part string) string {
	for i := 1; i < len(part); i++ {
		if part[i] != '.' {
			continue
		}
		word, _, _ := strings.Cut(part[i+1:], ".")
		if suffixes[word] || isNumber(word) || strings.HasPrefix(word, "__uniq") {
			return part[:i]
		}
	}
	return part
}

// cutNewSuffixes removes from a name the suffixes that the first version of signatures left
// there: words of newSuffixes after a dot, and suffixes after a dollar sign where dots are not
// allowed.
func cutNewSuffixes(part string) string {
	for i := 1; i < len(part); i++ {
		if part[i] != '.' && part[i] != '$' {
			continue
		}
		word := part[i+1:]
		if end := strings.IndexAny(word, ".$"); end >= 0 {
			word = word[:end]
		}
		if newSuffixes[word] || part[i] == '$' && (suffixes[word] || isLinkHash(word)) {
			return part[:i]
		}
	}
	return part
}

// isLinkHash reports whether a word is a hash that a linker added to a name.
func isLinkHash(word string) bool {
	return len(word) >= 8 && strings.Trim(word, "0123456789abcdef") == "" && strings.ContainsAny(word, "0123456789")
}

// cName returns a name without namespaces: of C, or extern "C".
func cName(n string) string {
	if same := aliases[n]; same != "" {
		return same
	}
	isReserved := strings.HasPrefix(n, "__") || strings.HasPrefix(n, "_IO_")
	if !isReserved {
		return unless(n, strings.TrimLeft(n, "_"))
	}
	s := strings.TrimPrefix(strings.TrimLeft(n, "_"), "IO_")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "libc_"), "new_")
	s = cutProcessor(s)
	for _, suffix := range reservedSuffixes {
		s = strings.TrimSuffix(s, suffix)
	}
	if same := aliases[s]; same != "" {
		s = same
	}
	return unless(n, s)
}

// unless returns a name, or the earlier one where nothing is left of it.
func unless(was, n string) string {
	if n == "" || n[0] >= '0' && n[0] <= '9' {
		return was
	}
	return n
}

// cutProcessor removes the processors from the name of a function of the C library:
// strlen_avx2.
func cutProcessor(n string) string {
	for i := 1; i < len(n); i++ {
		if n[i] != '_' {
			continue
		}
		if word, _, _ := strings.Cut(n[i+1:], "_"); processors[word] {
			return n[:i]
		}
	}
	return n
}
