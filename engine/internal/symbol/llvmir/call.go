// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"iter"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// forbidsInlining reports whether an attribute of a function or of a call keeps it from
// being inlined. A function that is not optimized is not inlined either.
func forbidsInlining(attribute string) bool { return attribute == "noinline" || attribute == "optnone" }

// attributes reads a group of attributes, after the word "attributes". It leaves the
// position unchanged, and the caller skips the group.
func (s *scanner) attributes() {
	before := s.pos
	defer func() { s.pos = before }()
	name := s.next()
	if name.kind != hashToken || !s.is(s.next(), '=') || !s.is(s.next(), '{') {
		return
	}
	for {
		t := s.next()
		switch {
		case t.kind == endToken, s.is(t, '}'), s.beginsTop(t):
			return
		case t.kind == wordToken && forbidsInlining(string(s.text(t))):
			if s.noInline == nil {
				s.noInline = map[string]bool{}
			}
			s.noInline[string(s.text(name))] = true
		}
	}
}

// isNeverInlined reports whether the attributes of a function keep it from being inlined.
func (f *Function) isNeverInlined() bool {
	if f.isNoInline || f.group == 0 {
		return f.isNoInline
	}
	l := lexer{data: f.module.source}
	return f.module.noInline[string(l.text(l.tokenAt(int(f.group))))]
}

// Calls are the calls of functions that the module defines; see symbol.IR.
func (m *Module) Calls() iter.Seq[symbol.Call] {
	return func(yield func(symbol.Call) bool) {
		for i := range m.functions {
			f := &m.functions[i]
			for inst := range f.Instructions() {
				switch inst.Opcode {
				case "call", "invoke", "callbr":
				default:
					continue
				}
				name, never := m.callee(&f.instructions[inst.Index])
				callee, ok := m.Function(name)
				if !ok {
					continue
				}
				c := symbol.Call{Position: m.position(f, inst.Index), Callee: name, NeverInlined: never || callee.isNeverInlined()}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// callee returns the name of the called function, and whether attributes of the call keep
// it from being inlined. Outside of brackets a call names nothing else.
func (m *Module) callee(call *instruction) (name string, never bool) {
	l := lexer{data: m.source[:call.end], pos: int(call.start)}
	depth := 0
	for {
		t := l.next()
		switch {
		case t.kind == endToken:
			return name, never
		case t.kind == otherToken:
			switch l.data[t.start] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
			}
		case depth != 0:
		case t.kind == globalToken && name == "":
			name = strings.TrimPrefix(unquote(l.text(t)), "\x01")
		case t.kind == hashToken && m.noInline[string(l.text(t))],
			t.kind == wordToken && forbidsInlining(string(l.text(t))):
			never = true
		}
	}
}
