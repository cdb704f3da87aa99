// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"strings"
)

// This file takes the path out of names as demanglers, debug information and symbol
// files of C++ and Rust write them: "void ns::f<int>(int) const [clone .part.0]" is
// ns, f.

// maxQualified is how deep types are read that stand for a part of a path:
// <<A as B>::C as D>::f.
const maxQualified = 8

// A scanner reads a name from front to back.
type scanner struct {
	text  string
	at    int
	depth int // of types that stand for a part of a path
	group groupEnder
	parts []string // that are complete
	part  []byte   // that is read
	// isOver says that the part's parameters were passed: up to the next part there are
	// only qualifiers.
	isOver bool
}

// partsOf are the parts of a name; empty where it has none.
func partsOf(text string, depth int) []string {
	s := &scanner{text: text, depth: depth}
	for s.at < len(s.text) && s.next() {
	}
	s.flush()
	return s.parts
}

// flush ends a part.
func (s *scanner) flush() {
	if len(s.part) > 0 {
		s.parts = append(s.parts, string(s.part))
	}
	s.part, s.isOver = s.part[:0], false
}

// rest is what was not read.
func (s *scanner) rest() string { return s.text[s.at:] }

// next reads something; it is false where the name ends.
func (s *scanner) next() bool {
	c := s.text[s.at]
	switch {
	case strings.HasPrefix(s.rest(), "::"):
		s.flush()
		s.at += 2
	case c == '(':
		return s.round()
	case c == '<':
		s.angle()
	case c == '{':
		s.brace()
	case c == '[':
		s.at = s.group.end(s.text, s.at) // [abi:cxx11]
	case s.isOver:
		s.at++ // const, &, noexcept
	case c == ' ':
		return s.blank()
	case len(s.part) == 0 && (c == '\'' || c == '`'):
		s.quoted(c)
	case len(s.part) == 0 && strings.HasPrefix(s.rest(), "operator"):
		s.operator()
	case len(s.part) == 0 && (c == '*' || c == '&'):
		s.at++
	default:
		s.part = append(s.part, c)
		s.at++
	}
	return true
}

// blank reads what stands between a type and a name, or before what compilers added to a
// name.
func (s *scanner) blank() bool {
	s.at++
	if rest := s.rest(); strings.HasPrefix(rest, "(.") || strings.HasPrefix(rest, "[") {
		return false // (.cold), [clone .cold]
	} else if strings.HasPrefix(rest, "<") && len(s.part) > 0 {
		return true // operator< <int>
	}
	s.parts, s.part = s.parts[:0], s.part[:0] // it was of the type that is returned
	return true
}

// notCalled are words before round brackets that are no names.
var notCalled = map[string]bool{"decltype": true, "typeof": true, "__typeof__": true}

// round reads parameters, an unnamed namespace, or a function that returns a pointer to
// a function.
func (s *scanner) round() bool {
	end := s.group.end(s.text, s.at)
	in := strings.TrimSuffix(s.text[s.at+1:end], ")")
	s.at = end
	switch {
	case len(s.part) > 0:
		s.isOver = !notCalled[string(s.part)]
	case s.isOver:
	case strings.HasPrefix(in, "anonymous"):
		s.part = append(s.part, unnamedSpace...)
	case strings.HasPrefix(in, "*") || strings.HasPrefix(in, "&"):
		if s.depth < maxQualified {
			s.parts = partsOf(strings.TrimLeft(in, "*&"), s.depth+1)
		}
		return false
	}
	return true
}

// angle reads template arguments, or a type that stands for a part of a path.
func (s *scanner) angle() {
	end := s.group.end(s.text, s.at)
	in := strings.TrimSuffix(s.text[s.at+1:end], ">")
	s.at = end
	switch {
	case len(s.part) > 0 || s.isOver:
	case strings.HasPrefix(in, "lambda"):
		s.part = append(s.part, lambda...)
	case in == "unnamed":
		s.part = append(s.part, unnamedSpace...)
	case strings.HasPrefix(in, "unnamed"):
		s.part = append(s.part, unnamedType...)
	case in == "name omitted": // by a program that wrote a symbol file
	case len(s.parts) == 0:
		s.part = append(s.part, qualified(in, s.depth)...)
	}
}

// brace reads what has no name: {lambda(int)#1}, {{closure}}, {closure#0}, {impl#2}.
func (s *scanner) brace() {
	end := s.group.end(s.text, s.at)
	in := strings.Trim(s.text[s.at:end], "{}")
	s.at = end
	if len(s.part) > 0 || s.isOver {
		return
	}
	for _, b := range braces {
		if strings.HasPrefix(in, b.begins) {
			s.part = append(s.part, b.is...)
			return
		}
	}
	in, _, _ = strings.Cut(in, "#")
	s.part = append(s.part, "{"+in+"}"...)
}

// quoted reads what has no name as LLVM and Microsoft's tools write it: 'lambda0',
// `anonymous namespace'.
func (s *scanner) quoted(quote byte) {
	in, _, isClosed := strings.Cut(s.text[s.at+1:], "'")
	s.at += 1 + len(in)
	if isClosed {
		s.at++
	}
	name, _, _ := strings.Cut(in, "(")
	name = strings.TrimRight(name, "0123456789")
	switch {
	case strings.HasPrefix(name, "lambda"):
		s.part = append(s.part, lambda...)
	case strings.HasPrefix(name, "unnamed"):
		s.part = append(s.part, unnamedType...)
	case strings.HasPrefix(name, "anonymous"):
		s.part = append(s.part, unnamedSpace...)
	case name != "" && quote == '`':
		s.part = append(s.part, "`"+name+"'"...)
	case name != "":
		s.part = append(s.part, "{"+name+"}"...)
	}
}

// operator reads the name of an operator or of a conversion.
func (s *scanner) operator() {
	const word = "operator"
	s.part = append(s.part, word...)
	s.at += len(word)
	rest := s.rest()
	op := operatorAt(s.text, s.at)
	switch {
	case rest == "" || isIdentifier(rest[0]): // operator_of
	case op != "":
		s.part = append(s.part, op...)
		s.at += len(op)
	case strings.HasPrefix(rest, `""`):
		s.at += 2
		s.part = append(s.part, `""`...)
		for strings.HasPrefix(s.rest(), " ") {
			s.at++
		}
	case rest[0] == ' ':
		s.conversion()
	}
}

// conversion reads the type that an operator converts to, or new and delete.
func (s *scanner) conversion() {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] != '(' {
		if c := s.text[s.at]; c == '<' || c == '{' {
			s.part = append(s.part, s.text[from:s.at]...)
			s.at = s.group.end(s.text, s.at)
			from = s.at
			continue
		}
		s.at++
	}
	s.part = append(s.part, s.text[from:s.at]...)
}

// qualified is what stands in the angle brackets at the beginning of a path of Rust: a
// type, or a type and the trait that it implements.
func qualified(in string, depth int) string {
	if depth >= maxQualified {
		return "<>"
	}
	of, trait, isTrait := cutAs(in)
	if !isTrait {
		return typeName(of, depth)
	}
	return "<" + typeName(of, depth) + " as " + typeName(trait, depth) + ">"
}

// cutAs cuts a type from its trait.
func cutAs(in string) (of, trait string, isTrait bool) {
	var g groupEnder
	for i := 0; i < len(in); i++ {
		if closers[in[i]] != 0 {
			i = g.end(in, i) - 1
		} else if hasPrefixAt(in, i, " as ") {
			return in[:i], in[i+len(" as "):], true
		}
	}
	return in, "", false
}

// typeName is a type without its arguments and lifetimes.
func typeName(in string, depth int) string {
	var g groupEnder
	var out []byte
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == '<':
			end := g.end(in, i)
			if i == 0 {
				out = append(out, qualified(strings.TrimSuffix(in[1:end], ">"), depth+1)...)
			} else {
				out = bytes.TrimSuffix(out, []byte("::"))
			}
			i = end - 1
		case c == '\'': // 'a
			for i+1 < len(in) && isIdentifier(in[i+1]) {
				i++
			}
			if i+1 < len(in) && in[i+1] == ' ' {
				i++
			}
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
