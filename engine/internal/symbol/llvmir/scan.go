// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"bytes"
	"strconv"
)

// maxDepth bounds the nesting of brackets.
const maxDepth = 256

// scanner finds the nodes and instructions of a module.
type scanner struct {
	*Module
	lexer
}

// module reads the text from its start to its end, and reports whether anything of LLVM IR
// was in it. It skips unknown text at the top level.
func (s *scanner) module() (found bool) {
	inGlobal := -1 // index of the global variable that is being defined, or -1
	for {
		t := s.next()
		switch t.kind {
		case endToken:
			return found
		case nodeToken, nameToken:
			if s.is(s.peek(), '=') {
				s.next()
				s.define(t)
				found, inGlobal = true, -1
			} else if inGlobal >= 0 && t.kind == nameToken && string(s.text(t)) == "!dbg" {
				dbg := s.peek()
				s.globals = append(s.globals, global{uint32(inGlobal), uint32(dbg.start)})
			} else if inGlobal >= 0 && t.kind == nameToken && string(s.text(t)) == "!dbg.def" {
				s.problem(t.start, "the fragment of a global variable is not read")
			}
		case globalToken:
			if s.is(s.peek(), '=') {
				found, inGlobal = true, t.start
			}
		case wordToken:
			switch string(s.text(t)) {
			case "define":
				inGlobal = -1
				found = s.function(t) || found
			case "declare":
				found, inGlobal = true, -1
			case "attributes":
				found, inGlobal = true, -1
				s.attributes()
			case "target", "source_filename":
				found, inGlobal = true, -1
			}
		case otherToken:
			if c := s.data[t.start]; c == '{' || c == '[' || c == '(' {
				s.skipBrackets(t)
			}
		}
	}
}

// define records the node or named list whose number or name is t. The "=" is read.
func (s *scanner) define(t token) {
	def := uint32(t.start)
	if t.kind == nameToken {
		s.named = append(s.named, node{def: def})
	} else {
		id, err := strconv.ParseUint(string(s.text(t)[1:]), 10, 32)
		if err != nil {
			s.problem(t.start, "node number %s, at most 4294967295 expected", shorten(s.text(t)))
			return
		}
		s.nodes = append(s.nodes, node{uint32(id), def})
	}
	s.order = append(s.order, def)
	for {
		before := s.pos
		v := s.next()
		switch {
		case v.kind == wordToken && (string(s.text(v)) == "distinct" || string(s.text(v)) == "metadata"):
			continue
		case v.kind == bangToken:
			if !s.is(s.peek(), '{') {
				break
			}
			s.skipBrackets(s.next())
			return
		case v.kind == nameToken:
			if !s.is(s.peek(), '(') {
				break
			}
			s.skipBrackets(s.next())
			return
		case v.kind == metaString, v.kind == wordToken && string(s.text(v)) == "null":
			return
		}
		s.problem(v.start, "a node is expected behind %s =", shorten(s.text(t)))
		s.pos = before
		return
	}
}

// beginsTop reports whether a token begins an item of the top level: a definition at the
// start of a line. The scanner resumes there after brackets that are not closed.
func (s *scanner) beginsTop(t token) bool {
	if !s.beginsLine(t) {
		return false
	}
	switch t.kind {
	case wordToken:
		switch string(s.text(t)) {
		case "define", "declare", "attributes", "source_filename":
			return true
		}
	case nodeToken, nameToken, globalToken:
		return s.is(s.peek(), '=')
	}
	return false
}

// closing maps an opening bracket to the closing one.
var closing = [256]byte{'(': ')', '[': ']', '{': '}'}

// skipBrackets skips the text between the bracket open, which is read, and its closing
// bracket.
func (s *scanner) skipBrackets(open token) {
	var stack []byte
	stack = append(stack, closing[s.data[open.start]])
	for len(stack) > 0 {
		before := s.pos
		t := s.next()
		if t.kind == endToken || s.beginsTop(t) {
			s.problem(open.start, "the bracket %q is not closed", s.data[open.start])
			s.pos = before
			return
		}
		if t.kind != otherToken {
			continue
		}
		switch c := s.data[t.start]; c {
		case '(', '[', '{':
			if len(stack) == maxDepth {
				s.problem(t.start, "brackets within %d brackets", maxDepth)
				return
			}
			stack = append(stack, closing[c])
		case ')', ']', '}':
			if c != stack[len(stack)-1] {
				s.problem(t.start, "%q expected, found %q", stack[len(stack)-1], c)
				return
			}
			stack = stack[:len(stack)-1]
		}
	}
}

// shorten cuts a text for a message.
func shorten(text []byte) string {
	const longest = 40
	text = bytes.ToValidUTF8(text, []byte("?"))
	if len(text) > longest {
		return strconv.Quote(string(bytes.ToValidUTF8(text[:longest], nil))) + "..."
	}
	return strconv.Quote(string(text))
}
