// SPDX-License-Identifier: Apache-2.0

// Package funcname reads the names of functions as demanglers, debug information and symbol files
// write them: their paths, and short forms of them for people.
package funcname

import (
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxName is the longest name that is shortened.
	maxName = 1 << 16

	// folded stands for the arguments of a template, or generic ones, and foldedD in D.
	folded, foldedD = "<...>", "!(...)"

	// dFile ends the names of D's source files, dMangled begins its linkage names.
	dFile, dMangled = ".d", "_D"
)

// Of returns the name of a function for people; see Short. It is "" where it has none.
func Of(s *trace.Symbol) string {
	if s.IsDecoded {
		return s.Function
	}
	return Short(s.Function, s.LinkageName, s.File)
}

// Short returns the name of a function for people: without result type, parameters, the inline
// namespaces of libraries and hashes, and with <...> for arguments. Names of C, Ada, Fortran and
// interpreters stay, and so does every name that would be longer. linkage and file are the name in
// the symbol table and the source file of the function; "" where they are not known.
func Short(function, linkage, file string) string {
	key := CacheKey{Function: function}
	switch {
	case len(function) > maxName || !strings.ContainsAny(function, "<({[:`'!"):
		return function
	case IsGo(function, file):
		key.Style = styleGo
	case strings.HasPrefix(linkage, dMangled) || strings.HasSuffix(file, dFile):
		key.Style = styleD
	}
	return shortNames.Get(key, shortOf)
}

// The styles of names by which shortNames has them; 0 for others.
const (
	styleGo = 'g'
	styleD  = 'd'
)

var shortNames Cache[string]

// shortOf shortens a name of a style.
func shortOf(key CacheKey) string {
	function, short := key.Function, key.Function
	switch {
	case key.Style == styleGo:
		short = FoldBrackets(function, "[...]")
	case key.Style == styleD:
		short = shortD(function)
	case isPath(function):
		short = shortPath(function)
	}
	if short == "" || len(short) > len(function) {
		return function
	}
	return short
}

// subjects begin the names of things that compilers make for a function, a type or a variable.
var subjects = []string{
	"non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ", "transaction clone for ", "guard variable for ",
	"vtable for ", "VTT for ", "construction vtable for ", "typeinfo for ", "typeinfo name for ", "TLS init function for ", "TLS wrapper function for ",
	thunk, "static initializer for ", "module initializer for ", "initializer for module ",
}

// isPath reports whether a name is a path of C++ or Rust, and not of Objective-C, or of an
// interpreter, whose names have files in them.
func isPath(function string) bool {
	function = strings.TrimPrefix(function, thunk)
	for _, begins := range []string{"-[", "+[", "["} {
		if strings.HasPrefix(function, begins) {
			return false
		}
	}
	var g Groups
	hasMark := false
	for i := 0; i < len(function); i++ {
		switch c := function[i]; {
		case closer(c) != 0:
			hasMark = hasMark || c != '['
			i = g.End(function, i) - 1
		case c == '"' && !strings.HasSuffix(strings.TrimRight(function[:i], `" `), "operator"): // of Ada
			return false
		case c == '/' && !strings.HasSuffix(function[:i], "operator"):
			return false
		case c == '`':
			hasMark = true
			i = quoteEnd(function, i) - 1
		case c == '\'':
			hasMark = true
		case hasPrefixAt(function, i, "::"):
			hasMark = true
			i++
		case c == ':':
			return false
		}
	}
	return hasMark
}

// fold returns arguments in their brackets: very short ones as they are.
func fold(arguments string) string {
	switch arguments = strings.TrimSpace(arguments); {
	case arguments == "":
		return ""
	case len(arguments) <= len("...") && strings.IndexFunc(arguments, isNoLetter) < 0:
		return "<" + arguments + ">"
	}
	return folded
}

func isNoLetter(r rune) bool { return r >= 0x80 || !isIdentifier(byte(r)) }

// noCut keeps the suffixes of a name.
func noCut(last string) string { return last }

// shortPath shortens a name of C++ or Rust.
func shortPath(function string) string {
	for _, s := range subjects {
		if rest, ok := strings.CutPrefix(function, s); ok {
			if short := shortPath(rest); short != "" {
				return s + short
			}
			return function
		}
	}
	return join(path(function, true, noCut))
}

// join returns the text of a path.
func join(parts []part) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("::")
		}
		text := strings.TrimRight(p.text, " ")
		b.WriteString(text)
		if p.arguments == "" {
			continue
		}
		if last := text[len(text)-1]; last == '<' || last == '>' && strings.HasPrefix(text, "operator") {
			b.WriteByte(' ')
		}
		b.WriteString(p.arguments)
	}
	return b.String()
}

// usualNames are the names that programs use for templates of std with default arguments, by the
// templates' names. For other characters than char they begin as characters has it.
var usualNames = map[string]string{
	"basic_string": "string", "basic_string_view": "string_view", "basic_istream": "istream", "basic_ostream": "ostream", "basic_iostream": "iostream",
	"basic_ios": "ios", "basic_streambuf": "streambuf", "basic_filebuf": "filebuf", "basic_ifstream": "ifstream", "basic_ofstream": "ofstream",
	"basic_fstream": "fstream", "basic_stringbuf": "stringbuf", "basic_istringstream": "istringstream", "basic_ostringstream": "ostringstream",
	"basic_stringstream": "stringstream", "basic_regex": "regex",
}

// characters are the types of characters with what begins the usual names for them.
var characters = []struct{ kind, begins string }{
	{"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"},
}

// usualName returns the usual name of a template of std with its arguments; "" where it has none.
func usualName(template, arguments string) string {
	usual := usualNames[template]
	if usual == "" {
		return ""
	}
	kind, rest, _ := strings.Cut(arguments, ",")
	kind = strings.TrimSpace(kind)
	for _, c := range characters {
		if kind != c.kind {
			continue
		}
		if strings.HasPrefix(c.begins, "u") && usual != "string" && usual != "string_view" {
			return ""
		}
		for other := range strings.SplitSeq(rest, ",") {
			if !isUsual(strings.TrimSpace(other), kind) {
				return ""
			}
		}
		return c.begins + usual
	}
	return ""
}

// isUsual reports whether an argument of a template of characters is its default.
func isUsual(argument, kind string) bool {
	rest, isStd := strings.CutPrefix(withoutTag(argument), "std::")
	if !isStd {
		return argument == ""
	}
	if space, after, ok := strings.Cut(rest, "::"); ok && isInline("std", space) {
		rest = after
	}
	name, rest, _ := strings.Cut(rest, "<")
	element, after, _ := strings.Cut(rest, ">")
	return (name == "char_traits" || name == "allocator" || name == "regex_traits") && element == kind && strings.TrimSpace(after) == ""
}

// shortD shortens a name of D: without parameters, and with !(...) for arguments.
func shortD(function string) string {
	var g Groups
	var b strings.Builder
	for i := 0; i < len(function); i++ {
		switch c := function[i]; {
		case c == '!' && i+1 < len(function) && function[i+1] == '(':
			b.WriteString(foldedD)
			i = g.End(function, i+1) - 1
		case c == '(':
			i = g.End(function, i) - 1
		case c == ' ' && strings.IndexByte(function[:i], '(') >= 0: // const
			i = len(function)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cut stands for the part of a name that is left out.
const cut = "…"

// Fit returns a name in at most a number of characters: without the parts of its path in the
// middle, or else without its own middle.
func Fit(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	for _, shorten := range []func(string) string{bareTypes, noArguments, noTrait} {
		if name = shorten(name); utf8.RuneCountInString(name) <= most {
			return name
		}
	}
	parts, separator := pathParts(name)
	if len(parts) == 1 {
		return cutMiddle(name, most)
	}
	first := parts[0] + separator
	for _, begins := range []string{first + cut + separator, cut + separator} {
		if last := lastParts(name, parts, separator, most-utf8.RuneCountInString(begins)); last != "" {
			return begins + last
		}
	}
	return cut + separator + cutMiddle(parts[len(parts)-1], most-1-len(separator))
}

// lastParts returns as many of the last parts of a path as have at most a number of characters
// together, but not the first one; "" where the last one has more.
func lastParts(name string, parts []string, separator string, most int) string {
	size := -len(separator)
	kept := ""
	for i := len(parts) - 1; i > 0; i-- {
		size += len(separator) + len(parts[i])
		most -= utf8.RuneCountInString(parts[i])
		if most < 0 {
			break
		}
		most -= len(separator)
		kept = name[len(name)-size:]
	}
	return kept
}

// cutMiddle returns a name without its middle.
func cutMiddle(name string, most int) string {
	rest, isFolded := strings.CutSuffix(name, folded)
	end := ""
	if isFolded && most > 2*len(folded) {
		name, end, most = rest, folded, most-len(folded)
	}
	runes := []rune(name)
	most = max(most, 2)
	if len(runes) <= most {
		return name + end
	}
	tail := (most - 1) / 2
	return string(runes[:most-1-tail]) + cut + string(runes[len(runes)-tail:]) + end
}

// pathParts returns the parts of a path of C++, Rust or D, or the folders of a package of Go, and
// the separator between them.
func pathParts(name string) (parts []string, separator string) {
	switch {
	case strings.Contains(name, "::"):
		separator = "::"
	case strings.Contains(name, foldedD):
		separator = "."
	default:
		separator = "/"
	}
	var g Groups
	start := 0
	for i := 0; i < len(name); i++ {
		switch {
		case closer(name[i]) != 0:
			i = max(g.End(name, i)-1, i)
		case hasPrefixAt(name, i, separator):
			parts = append(parts, name[start:i])
			start = i + len(separator)
			i = start - 1
		}
	}
	return append(parts, name[start:]), separator
}

// bareTypes returns a path of Rust that begins with <A as B> with the last parts of A's and B's
// paths alone.
func bareTypes(name string) string {
	if !strings.HasPrefix(name, "<") {
		return name
	}
	var g Groups
	end := g.End(name, 0)
	implementer, trait, isTrait := cutAs(strings.TrimSuffix(name[1:end], ">"))
	if !isTrait {
		return name
	}
	return "<" + bareType(implementer) + " as " + bareType(trait) + ">" + name[end:]
}

// noArguments returns a path of Rust that begins with <A as B> without the arguments of A and B.
func noArguments(name string) string {
	if !strings.HasPrefix(name, "<") {
		return name
	}
	var g Groups
	end := g.End(name, 0)
	var b strings.Builder
	for i := 0; i < end; i++ {
		if i > 0 && name[i] == '<' && isIdentifier(name[i-1]) {
			i = g.End(name, i) - 1
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String() + name[end:]
}

// noTrait returns a path of Rust that begins with <A as B> without B.
func noTrait(name string) string {
	if !strings.HasPrefix(name, "<") {
		return name
	}
	var g Groups
	end := g.End(name, 0)
	implementer, _, isTrait := cutAs(strings.TrimSuffix(name[1:end], ">"))
	if !isTrait {
		return name
	}
	return "<" + implementer + " as " + cut + ">" + name[end:]
}

// bareType returns the last part of a type's path, with the marks before it.
func bareType(text string) string {
	if strings.HasPrefix(text, "<") {
		return text
	}
	parts, _ := pathParts(text)
	marks := parts[0][:len(parts[0])-len(strings.TrimLeft(parts[0], "&*! "))]
	if len(parts) == 1 {
		return text
	}
	for _, word := range []string{"mut ", "const ", "dyn "} {
		if strings.HasPrefix(parts[0][len(marks):], word) {
			marks += word
		}
	}
	return marks + parts[len(parts)-1]
}
