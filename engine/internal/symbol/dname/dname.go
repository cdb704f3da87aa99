// SPDX-License-Identifier: Apache-2.0

// Package dname makes names of D readable, which its compilers mangle by the specification
// of D's ABI ("Name Mangling"). GNU reads all of them, in the spelling of binutils; LLVM
// reads only the few that LLVM 22 reads.
package dname

import (
	"strings"
)

const (
	// maxDepth bounds the nesting of a name's parts; back references nest too.
	maxDepth = 256
	// maxOutput bounds the readable name: names that refer back to themselves grow
	// exponentially.
	maxOutput = 1 << 16
	// maxSteps bounds the parts that are read, each time that a back reference leads to
	// them.
	maxSteps = 1 << 16
)

// Main is the name of the function that a program of D begins with, which is not mangled.
const Main = "_Dmain"

// IsMangled reports whether a name looks like a name of D.
func IsMangled(name string) bool { return strings.HasPrefix(name, "_D") }

// GNU returns the readable form of a name in the spelling of binutils 2.40; ok is false
// where it is not a name of D.
func GNU(name string) (readable string, ok bool) {
	if name == Main {
		return "D main", true
	}
	if !IsMangled(name) {
		return "", false
	}
	p := &parser{s: name, lastRef: len(name)}
	text := p.mangled()
	if p.failed || p.pos != len(name) || text == "" {
		return "", false
	}
	return text, true
}

// parser reads a name from front to back. After a failure its results mean nothing.
type parser struct {
	s       string
	pos     int
	failed  bool
	depth   int
	steps   int
	lastRef int // offset of the innermost back reference to a type, which leads further to the front
}

// fail marks the name as unreadable.
func (p *parser) fail() string {
	p.failed = true
	return ""
}

// enter begins a nested part; it is false where the nesting is too deep, or too much was
// read.
func (p *parser) enter() bool {
	p.depth++
	p.steps++
	if p.depth > maxDepth || p.steps > maxSteps {
		p.failed = true
	}
	return !p.failed
}

func (p *parser) leave() { p.depth-- }

// bounded returns a text, or fails if it is too long.
func (p *parser) bounded(text string) string {
	if len(text) > maxOutput {
		return p.fail()
	}
	return text
}

func (p *parser) rest() string { return p.s[p.pos:] }

// peek returns the byte at a distance; 0 behind the end.
func (p *parser) peek(distance int) byte {
	if p.pos+distance < len(p.s) {
		return p.s[p.pos+distance]
	}
	return 0
}

// take skips a prefix if it is there.
func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.rest(), prefix) {
		return false
	}
	p.pos += len(prefix)
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a decimal number.
func (p *parser) number() (n int) {
	if !isDigit(p.peek(0)) {
		p.failed = true
	}
	for isDigit(p.peek(0)) {
		if n = n*10 + int(p.s[p.pos]-'0'); n > len(p.s)<<8+maxOutput {
			p.failed = true
			return 0
		}
		p.pos++
	}
	return n
}

// reference reads a back reference: the distance back to its target, in base 26, whose last
// digit is a small letter.
func (p *parser) reference() (target int, ok bool) {
	start, n := p.pos, 0
	for i := p.pos + 1; i < len(p.s); i++ {
		c := p.s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			n = n*26 + int(c-'A')
		case c >= 'a' && c <= 'z':
			n = n*26 + int(c-'a')
			p.pos = i + 1
			return start - n, n > 0 && n <= start
		default:
			return 0, false
		}
		if n > len(p.s) {
			return 0, false
		}
	}
	return 0, false
}

// isTemplate reports whether a template instance without a length is next.
func (p *parser) isTemplate() bool {
	return strings.HasPrefix(p.rest(), "__T") || strings.HasPrefix(p.rest(), "__U")
}

// isName reports whether a part of a qualified name is at a distance.
func (p *parser) isName(distance int) bool {
	q := parser{s: p.s, pos: min(p.pos+distance, len(p.s))}
	if isDigit(q.peek(0)) || q.isTemplate() {
		return true
	}
	if q.peek(0) != 'Q' {
		return false
	}
	target, ok := q.reference()
	return ok && isDigit(p.s[target])
}

// mangled reads a whole name: _D, its parts, and a type, which is not shown.
func (p *parser) mangled() string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	p.pos += len("_D")
	text := p.qualified(true)
	if !p.failed && !p.take("Z") { // artificial names have no type
		p.typ()
	}
	return text
}

// qualified reads the parts of a name, including the parameters of functions among them. It
// shows the modifiers of a method's this if hasModifiers is set.
func (p *parser) qualified(hasModifiers bool) string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	text, isFirst := "", true
	for {
		if p.peek(0) == '0' { // unnamed parts
			for p.take("0") {
			}
		} else {
			if !isFirst {
				text += "."
			}
			isFirst = false
			text = p.bounded(p.identifier(text))
			if p.failed {
				return ""
			}
			text += p.ownParameters(hasModifiers)
		}
		if p.failed || !p.isName(0) {
			return p.bounded(text)
		}
	}
}

// ownParameters reads the parameters of a function that is a part of a qualified name; ""
// where something else follows.
func (p *parser) ownParameters(hasModifiers bool) string {
	if p.peek(0) != 'M' && !p.isConvention() {
		return ""
	}
	was := *p
	modifiers := ""
	if p.take("M") {
		modifiers = p.modifiers()
	}
	if !hasModifiers {
		modifiers = ""
	}
	_, _, parameters := p.function()
	if p.failed || p.pos == len(p.s) {
		steps := p.steps
		*p = was
		p.steps = steps
		return ""
	}
	return parameters + modifiers
}

// identifier reads a part of a qualified name and a dot at its end; before is the text of
// the parts before it.
func (p *parser) identifier(before string) string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	if p.peek(0) == 'Q' {
		target, ok := p.reference()
		if !ok {
			return p.fail()
		}
		end := p.pos
		p.pos = target
		text := p.plain(before, p.number())
		p.pos = end
		return text
	}
	if p.isTemplate() {
		return before + p.template(-1)
	}
	n := p.number()
	if p.failed || n == 0 || n > len(p.s)-p.pos {
		return p.fail()
	}
	if n >= 5 && p.isTemplate() {
		return before + p.template(n)
	}
	if name := p.s[p.pos : p.pos+n]; n >= 4 && strings.HasPrefix(name, "__S") && strings.Trim(name[3:], "0123456789") == "" {
		p.pos += n // a parent that makes names differ
		return p.identifier(before)
	}
	return p.plain(before, n)
}

// special are names that compilers generate, by the text that follows them: shown replaces
// them, before goes before the preceding parts.
var special = []struct{ name, follows, shown, before string }{
	{"__ctor", "", "this", ""}, {"__dtor", "", "~this", ""}, {"__postblit", "MFZ", "this(this)", ""},
	{"__init", "Z", "", "initializer for "}, {"__vtbl", "Z", "", "vtable for "}, {"__Class", "Z", "", "ClassInfo for "},
	{"__Interface", "Z", "", "Interface for "}, {"__ModuleInfo", "Z", "", "ModuleInfo for "},
}

// plain reads a name of n bytes; before is the text of the parts before it.
func (p *parser) plain(before string, n int) string {
	if p.failed || n > len(p.s)-p.pos {
		return p.fail()
	}
	name := p.s[p.pos : p.pos+n]
	p.pos += n
	for _, s := range special {
		if name != s.name || !strings.HasPrefix(p.rest(), s.follows) {
			continue
		}
		if s.before != "" {
			return s.before + strings.TrimSuffix(before, ".")
		}
		p.pos += len(s.follows)
		return before + s.shown
	}
	return before + name
}

// template reads a template instance of n bytes; -1: its length is unknown.
func (p *parser) template(n int) string {
	if !p.enter() {
		return ""
	}
	defer p.leave()
	start := p.pos
	if !p.isName(len("__T")) || p.peek(len("__T")) == '0' {
		return p.fail()
	}
	p.pos += len("__T")
	text := p.identifier("")
	text += "!(" + p.arguments() + ")"
	if n >= 0 && p.pos-start != n {
		return p.fail()
	}
	return p.bounded(text)
}

// arguments reads the arguments of a template.
func (p *parser) arguments() string {
	var list []string
	for size := 0; !p.failed; {
		if p.take("Z") {
			return strings.Join(list, ", ")
		}
		p.take("H") // a specialization
		var one string
		switch c := p.peek(0); c {
		case 'S':
			p.pos++
			one = p.symbol()
		case 'T':
			p.pos++
			one = p.typ()
		case 'V':
			p.pos++
			kind := p.kind()
			one = p.value(p.typ(), kind)
		case 'X':
			p.pos++
			n := p.number()
			if p.failed || n > len(p.s)-p.pos {
				return p.fail()
			}
			one = p.s[p.pos : p.pos+n]
			p.pos += n
		default:
			return p.fail()
		}
		if size += len(one); size > maxOutput {
			return p.fail()
		}
		list = append(list, one)
	}
	return ""
}

// kind returns the first letter of the type that is next.
func (p *parser) kind() byte {
	q := parser{s: p.s, pos: p.pos}
	for range maxDepth {
		if q.peek(0) != 'Q' {
			return q.peek(0)
		}
		target, ok := q.reference()
		if !ok {
			break
		}
		q.pos = target
	}
	p.failed = true
	return 0
}

// symbol reads a symbol that is an argument of a template. Compilers up to version 2.076
// put its length before it, whose last digits may be the first ones of the symbol itself.
func (p *parser) symbol() string {
	if strings.HasPrefix(p.rest(), "_D") && p.isName(len("_D")) {
		return p.mangled()
	}
	if p.peek(0) == 'Q' {
		return p.qualified(false)
	}
	start := p.pos
	n := p.number()
	if p.failed || n == 0 {
		return p.fail()
	}
	digits := p.pos
	for end := digits; end > start; end, n = end-1, n/10 {
		if text, ok := p.symbolAt(end, n); ok {
			return text
		}
	}
	if text, ok := p.symbolAt(start, -1); ok {
		return text
	}
	return p.fail()
}

// symbolAt reads a symbol at an index, of n bytes; -1: of any length.
func (p *parser) symbolAt(pos, n int) (text string, ok bool) {
	was := *p
	p.pos = pos
	switch {
	case p.isName(0):
		text = p.qualified(false)
	case strings.HasPrefix(p.rest(), "_D") && p.isName(len("_D")):
		text = p.mangled()
	default:
		p.failed = true
	}
	if !p.failed && (n < 0 || p.pos-pos == n) {
		return text, true
	}
	steps := p.steps
	*p = was
	p.steps = steps
	return "", false
}
