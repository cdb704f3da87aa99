// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
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
	key := funcname.CacheKey{Function: function}
	switch {
	case strings.HasSuffix(file, ".go"):
		key.Style = styleGo
	case isFirst:
		key.Style = styleFirst
	case strings.HasSuffix(file, dFile):
		key.Style = styleD
	}
	return names.Get(key, readName)
}

// The styles of names by which names has them; 0 for others.
const (
	styleGo    = 'g'
	styleD     = 'd'
	styleFirst = '1' // of the first version
)

var names funcname.Cache[name]

// readName reads a name of a style.
func readName(key funcname.CacheKey) name {
	function := strings.Map(funcname.Printable, strings.TrimSpace(key.Function))
	switch {
	case key.Style == styleGo || funcname.IsGo(function, ""):
		n := goName(function)
		return name{n, n}
	case key.Style == styleD:
		n := dName(function)
		return name{n, n}
	case strings.HasPrefix(function, "-[") || strings.HasPrefix(function, "+["):
		return name{function, function} // Objective-C has nothing to leave out
	}
	if symbol.IsMangled(function) {
		function = symbol.Demangle(function)
	}
	parts := pathOf(symbol.StripVersion(function), key.Style == styleFirst)
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

// pathOf returns the parts of a name, before tables are applied to them.
func pathOf(function string, isFirst bool) []string {
	out := funcname.Parts(function, func(last string) string {
		last = cutSuffixes(last)
		if !isFirst {
			last = cutNewSuffixes(last)
		}
		return last
	})
	if len(out) > 1 && out[0] == "std" && abbreviations[out[1]] != "" {
		out[1] = abbreviations[out[1]]
	}
	return out
}

// cutSuffixes removes from a name the suffixes of compilers and linkers: words that begin with
// a dot, and their numbers.
func cutSuffixes(part string) string {
	for i := 1; i < len(part); i++ {
		if part[i] != '.' {
			continue
		}
		word, _, _ := strings.Cut(part[i+1:], ".")
		if suffixes[word] || funcname.IsNumber(word) || strings.HasPrefix(word, "__uniq") {
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

// PlainName returns a function's name as the tables of signatures have it. file is its source file; "" where
// that is not known.
func PlainName(function, file string) string { return nameOf(function, file, false).plain }

// IsStartup reports whether a function of a plain name starts the program or a thread.
func IsStartup(plain string) bool {
	is, _ := newStartups.find(plain)
	return is
}

// IsPlumbing reports whether a function of a plain name only leads from one function of a program to another one.
func IsPlumbing(plain string) bool { return isPlumbing(plain) }

// IsSystem reports whether a module of a name, without folders, is the C library or a similar one.
func IsSystem(module string) bool { return isSystem(moduleName(module)) }
