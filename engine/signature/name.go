// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"unicode"

	"github.com/unwindd/unwindd/engine/symbol"
)

// maxName is how much of a name is read.
const maxName = 1 << 16

// A name is a function's name without what compilers, builds and addresses change.
type name struct {
	// plain is what tables know it by: with the underscores of reserved names.
	plain string
	// shown is what a signature has.
	shown string
}

// Name is a function's name as signatures have it: without parameters, template and
// generic arguments, the suffixes and numbers of compilers, symbol versions, hashes and
// inline namespaces. file is the source file of the function, which tells Go's names
// from those of C; "" where it is not known. The result is "" where nothing is left.
func Name(function, file string) string { return nameOf(function, file, false).shown }

// nameOf is Name, by the rules of the first version or of this one.
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
	n := strings.TrimPrefix(parts[0], "__GI_") // glibc's own calls of what it exports
	for _, p := range interceptors {
		n = strings.TrimPrefix(n, p)
	}
	return name{n, cName(n)}
}

// printable replaces what would not be one line.
func printable(r rune) rune {
	if r == unicode.ReplacementChar || unicode.IsControl(r) {
		return '?'
	}
	return r
}

// pathOf are the parts of a name without what is said of them by tables.
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
			out[len(out)-1] = lambda // its operator, and what calls that
		default:
			out = append(out, p)
		}
	}
	if len(out) > 1 && out[0] == "std" && abbreviations[out[1]] != "" {
		out[1] = abbreviations[out[1]]
	}
	return out
}

// isInline says whether a namespace is an inline one, of a version of a library.
func isInline(library, part string) bool {
	for _, v := range inlineSpaces[library] {
		if part == v || strings.HasSuffix(v, "*") && strings.HasPrefix(part, v[:len(v)-1]) && isNumber(part[len(v)-1:]) {
			return true
		}
	}
	return false
}

func isUnnamed(part string) bool { return part == lambda || part == unnamedType }

// isInvocation says whether a part is the operator of a lambda, or what compilers make to
// have a pointer to it.
func isInvocation(part string) bool {
	return part == "operator()" || part == "_FUN" || part == "__invoke" || part == lambda || strings.HasPrefix(part, "operator ")
}

// isHash says whether a part is the hash that ends a legacy name of Rust.
func isHash(part string) bool {
	return len(part) == 17 && part[0] == 'h' && strings.Trim(part[1:], "0123456789abcdef") == ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// cutSuffixes takes from a name what compilers and linkers put behind it: words that
// begin with a dot, and their numbers.
func cutSuffixes(part string) string {
	for at := 1; at < len(part); at++ {
		if part[at] != '.' {
			continue
		}
		word, _, _ := strings.Cut(part[at+1:], ".")
		if suffixes[word] || isNumber(word) || strings.HasPrefix(word, "__uniq") {
			return part[:at]
		}
	}
	return part
}

// cutNewSuffixes takes from a name what the first version of signatures left there: words
// of newSuffixes behind a dot, and what stands behind a dollar sign where dots cannot.
func cutNewSuffixes(part string) string {
	for at := 1; at < len(part); at++ {
		if part[at] != '.' && part[at] != '$' {
			continue
		}
		word := part[at+1:]
		if end := strings.IndexAny(word, ".$"); end >= 0 {
			word = word[:end]
		}
		if newSuffixes[word] || part[at] == '$' && (suffixes[word] || isLinkHash(word)) {
			return part[:at]
		}
	}
	return part
}

// isLinkHash reports whether a word is a hash that a linker put behind a name.
func isLinkHash(word string) bool {
	return len(word) >= 8 && strings.Trim(word, "0123456789abcdef") == "" && strings.ContainsAny(word, "0123456789")
}

// cName is a name without namespaces: of C, or extern "C".
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

// unless is a name, or the one that it was where nothing is left of it.
func unless(was, n string) string {
	if n == "" || n[0] >= '0' && n[0] <= '9' {
		return was
	}
	return n
}

// cutProcessor takes from a function of the C library which processors it is for:
// strlen_avx2.
func cutProcessor(n string) string {
	for at := 1; at < len(n); at++ {
		if n[at] != '_' {
			continue
		}
		if word, _, _ := strings.Cut(n[at+1:], "_"); processors[word] {
			return n[:at]
		}
	}
	return n
}
