// SPDX-License-Identifier: Apache-2.0

package funcname

import (
	"bytes"
	"strings"
)

// This file extracts the path from names as demanglers, debug information and symbol files of
// C++ and Rust write them: "void ns::f<int>(int) const [clone .part.0]" has the path ns, f.

// maxQualified is the depth to which types are read that stand for a part of a path: <<A as
// B>::C as D>::f.
const maxQualified = 8

// scanner reads a name from front to back.
type scanner struct {
	text   string
	offset int
	depth  int  // of nested types that stand for a part of a path
	folds  bool // arguments become <...>, and are not left out
	group  Groups
	parts  []part // complete parts
	part   []byte // the part being read
	// arguments are the folded arguments of the part being read.
	arguments string
	// whole is the last part with arguments, as it is in the text.
	whole string
	// isOver is true after the part's parameters: up to the next part there are only
	// qualifiers.
	isOver bool
}

// part is a part of a path.
type part struct {
	text      string
	arguments string // of a template, or generic ones: folded, with their brackets
}

// partsOf returns the parts of a name; empty where it has none.
func partsOf(text string, depth int, folds bool) []part {
	s := &scanner{text: text, depth: depth, folds: folds}
	for s.offset < len(s.text) && s.next() {
	}
	s.flush()
	return s.parts
}

// flush ends a part.
func (s *scanner) flush() {
	if len(s.part) > 0 {
		s.parts = append(s.parts, part{string(s.part), s.arguments})
	}
	s.part, s.isOver, s.arguments = s.part[:0], false, ""
}

// rest returns the text that was not read yet.
func (s *scanner) rest() string { return s.text[s.offset:] }

// next reads the next token; it returns false where the name ends.
func (s *scanner) next() bool {
	c := s.text[s.offset]
	switch {
	case strings.HasPrefix(s.rest(), "::"):
		s.flush()
		s.offset += 2
	case c == '(':
		return s.round()
	case c == '<':
		s.angle()
	case c == '{':
		s.brace()
	case c == '[':
		s.offset = s.group.End(s.text, s.offset) // [abi:cxx11]
	case c == '`':
		s.backquoted()
	case s.isOver:
		s.offset++ // const, &, noexcept
	case c == ' ':
		return s.blank()
	case len(s.part) == 0 && c == '\'':
		s.quoted()
	case len(s.part) == 0 && strings.HasPrefix(s.rest(), "operator"):
		s.operator()
	case len(s.part) == 0 && (c == '*' || c == '&'):
		s.offset++
	default:
		s.part = append(s.part, c)
		s.offset++
	}
	return true
}

// blank reads the text between a type and a name, or before a compiler's addition to a name.
func (s *scanner) blank() bool {
	s.offset++
	if rest := s.rest(); strings.HasPrefix(rest, "(.") || strings.HasPrefix(rest, "[") {
		return false // (.cold), [clone .cold]
	} else if strings.HasPrefix(rest, "<") && len(s.part) > 0 {
		return true // operator< <int>
	}
	s.parts, s.part, s.arguments = s.parts[:0], s.part[:0], "" // it was of the return type
	return true
}

// notCalled are words before round brackets that are not names.
var notCalled = map[string]bool{"decltype": true, "typeof": true, "__typeof__": true}

// round reads parameters, an unnamed namespace, or a function that returns a pointer to
// a function.
func (s *scanner) round() bool {
	end := s.group.End(s.text, s.offset)
	inner := strings.TrimSuffix(s.text[s.offset+1:end], ")")
	s.offset = end
	switch {
	case len(s.part) > 0:
		s.isOver = !notCalled[string(s.part)]
	case s.isOver:
	case strings.HasPrefix(inner, "anonymous"):
		s.part = append(s.part, UnnamedSpace...)
	case strings.HasPrefix(inner, "*") || strings.HasPrefix(inner, "&"):
		if s.depth < maxQualified {
			s.parts = partsOf(strings.TrimLeft(inner, "*&"), s.depth+1, s.folds)
		}
		return false
	}
	return true
}

// angle reads template arguments, or a type that stands for a part of a path.
func (s *scanner) angle() {
	end := s.group.End(s.text, s.offset)
	inner := strings.TrimSuffix(s.text[s.offset+1:end], ">")
	s.offset = end
	switch {
	case s.isOver:
	case len(s.part) > 0:
		s.fold(inner)
	case strings.HasPrefix(inner, "lambda"):
		s.part = append(s.part, Lambda...)
	case inner == "unnamed":
		s.part = append(s.part, UnnamedSpace...)
	case strings.HasPrefix(inner, "unnamed"):
		s.part = append(s.part, UnnamedType...)
	case inner == "name omitted": // by a program that wrote a symbol file
	case len(s.parts) == 0:
		s.part = append(s.part, s.qualified(inner, s.depth)...)
	case s.folds && strings.HasPrefix(inner, "impl "): // of a trait, in a path of Rust
		s.part = append(s.part, "<"+s.typeName(inner, s.depth)+">"...)
	case inner != "": // f::<T>
		s.parts[len(s.parts)-1].arguments = fold(inner)
	}
}

// fold reads the arguments of the part being read: a template of std with the arguments that it has
// by default gets its usual name.
func (s *scanner) fold(inner string) {
	if !s.folds || s.isConstructor(inner) {
		return
	}
	s.whole = string(s.part) + "<" + inner
	if usual := usualName(string(s.part), inner); usual != "" && s.isStd() {
		s.part = append(s.part[:0], usual...)
		return
	}
	s.arguments = fold(inner)
}

// isConstructor reports whether the part being read is the name of its class with the same arguments, as
// Microsoft's tools write constructors.
func (s *scanner) isConstructor(inner string) bool {
	return len(s.parts) > 0 && s.whole == strings.TrimPrefix(string(s.part), "~")+"<"+inner
}

// isStd reports whether the part being read is directly in std, or in an inline namespace of it.
func (s *scanner) isStd() bool {
	for i, p := range s.parts {
		if i == 0 && p.text != "std" || i > 0 && !isInline("std", p.text) {
			return false
		}
	}
	return len(s.parts) > 0
}

// brace reads something without a name: {lambda(int)#1}, {{closure}}, {closure#0}, {impl#2}.
func (s *scanner) brace() {
	end := s.group.End(s.text, s.offset)
	inner := strings.Trim(s.text[s.offset:end], "{}")
	s.offset = end
	if len(s.part) > 0 || s.isOver {
		return
	}
	for _, b := range Braces {
		if strings.HasPrefix(inner, b.Begins) {
			s.part = append(s.part, b.Is...)
			return
		}
	}
	inner, _, _ = strings.Cut(inner, "#")
	s.part = append(s.part, "{"+inner+"}"...)
}

// quoted reads something without a name as LLVM writes it: 'lambda0'.
func (s *scanner) quoted() {
	inner, _, isClosed := strings.Cut(s.text[s.offset+1:], "'")
	s.offset += 1 + len(inner)
	if isClosed {
		s.offset++
	}
	s.part = append(s.part, quotedText(inner, '\'')...)
}

// quotedText returns the text for something in quotes, by the first of them.
func quotedText(inner string, quote byte) string {
	name, _, _ := strings.Cut(inner, "(")
	name = strings.TrimRight(name, "0123456789")
	switch {
	case strings.HasPrefix(name, "lambda"):
		return Lambda
	case strings.HasPrefix(name, "unnamed"):
		return UnnamedType
	case strings.HasPrefix(name, "anonymous"):
		return UnnamedSpace
	case name != "" && quote == '`':
		return "`" + strings.TrimRight(name, " ") + "'"
	case name != "":
		return "{" + name + "}"
	}
	return ""
}

// operator reads the name of an operator or of a conversion.
func (s *scanner) operator() {
	const word = "operator"
	s.part = append(s.part, word...)
	s.offset += len(word)
	rest := s.rest()
	op := operatorAt(s.text, s.offset)
	switch {
	case rest == "" || isIdentifier(rest[0]): // operator_of
	case op != "":
		s.part = append(s.part, op...)
		s.offset += len(op)
	case strings.HasPrefix(rest, `""`):
		s.offset += 2
		s.part = append(s.part, `""`...)
		for strings.HasPrefix(s.rest(), " ") {
			s.offset++
		}
	case rest[0] == ' ':
		s.conversion()
	}
}

// conversion reads the type that an operator converts to, or new and delete.
func (s *scanner) conversion() {
	s.part = append(s.part, ' ')
	s.offset = len(s.text) - len(withoutTag(s.rest()[1:]))
	start := s.offset
	for s.offset < len(s.text) && s.text[s.offset] != '(' {
		if c := s.text[s.offset]; c == '<' || c == '{' {
			s.part = append(s.part, s.text[start:s.offset]...)
			end := s.group.End(s.text, s.offset)
			if s.folds && c == '<' {
				s.part = append(s.part, fold(strings.TrimSuffix(s.text[s.offset+1:end], ">"))...)
			}
			s.offset = end
			start = s.offset
			continue
		}
		s.offset++
	}
	s.part = append(s.part, s.text[start:s.offset]...)
}

// qualified returns the text in the angle brackets at the beginning of a path of Rust: a type,
// or a type and the trait that it implements.
func (s *scanner) qualified(text string, depth int) string {
	if depth >= maxQualified {
		return "<>"
	}
	implementer, trait, isTrait := cutAs(text)
	if !isTrait {
		return s.typeName(implementer, depth)
	}
	return "<" + s.typeName(implementer, depth) + " as " + s.typeName(trait, depth) + ">"
}

// cutAs cuts a type from its trait.
func cutAs(text string) (implementer, trait string, isTrait bool) {
	var g Groups
	for i := 0; i < len(text); i++ {
		if closer(text[i]) != 0 {
			i = g.End(text, i) - 1
		} else if hasPrefixAt(text, i, " as ") {
			return text[:i], text[i+len(" as "):], true
		}
	}
	return text, "", false
}

// typeName returns a type without its lifetimes, and with its arguments folded or left out.
func (s *scanner) typeName(text string, depth int) string {
	var g Groups
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '<':
			end := g.End(text, i)
			if i == 0 {
				out = append(out, s.qualified(strings.TrimSuffix(text[1:end], ">"), depth+1)...)
			} else {
				out = bytes.TrimSuffix(out, []byte("::"))
				if s.folds {
					out = append(out, fold(strings.TrimSuffix(text[i+1:end], ">"))...)
				}
			}
			i = end - 1
		case c == '\'': // 'a
			for i+1 < len(text) && isIdentifier(text[i+1]) {
				i++
			}
			if i+1 < len(text) && text[i+1] == ' ' {
				i++
			}
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
