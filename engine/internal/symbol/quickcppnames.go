// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strconv"
	"strings"
)

// This file reads the names of functions and types.

// quickFunction describes the function that a name is of.
type quickFunction struct {
	isTemplate bool // the last part has arguments: args
	isSpecial  bool // a constructor or a destructor
	args, ends int
	suffix     string // qualifiers that are behind the parameters
}

// encoding reads a function with its parameters, or a variable.
func (d *quickName) encoding() {
	d.enter()
	defer d.leave()
	start := len(d.out)
	_, f := d.name()
	if d.rest == "" || d.peek() == 'E' {
		d.write(f.suffix)
		return
	}
	outer := d.scope
	if d.scope = (quickScope{}); f.isTemplate {
		d.scopes++
		d.lastScope++
		d.scope = quickScope{d.lastScope, f.args, f.ends}
	}
	if f.isTemplate && !f.isSpecial {
		d.result(start)
	}
	d.write("(")
	d.parameters(true)
	d.write(")")
	d.write(f.suffix)
	if f.isTemplate {
		d.scopes--
	}
	d.scope = outer
}

// result reads the type of a function's result, and puts it before the function.
func (d *quickName) result(start int) {
	end := len(d.out)
	if t := d.kind(); t.declarator != 0 || t.isEmpty {
		d.fail()
		return
	}
	d.write(" ")
	moved := len(d.saved)
	d.saved = append(d.saved, d.out[start:end]...)
	d.out = append(d.out[:start], d.out[end:]...)
	d.out = append(d.out, d.saved[moved:]...)
	d.saved = d.saved[:moved]
}

// parameters reads the types of parameters.
func (d *quickName) parameters(mayBeEmpty bool) {
	if d.peek() == 'v' && (len(d.rest) == 1 || d.rest[1] == 'E' || d.rest[1] == '.') {
		d.skip(1)
		return
	}
	count := 0
	for isFirst := true; d.rest != "" && d.peek() != 'E' && d.peek() != '.'; count++ {
		before := len(d.out)
		if !isFirst {
			d.write(", ")
		}
		if t := d.kind(); !t.isEmpty {
			isFirst = false
		} else if d.out = d.out[:min(before, len(d.out))]; !mayBeEmpty {
			d.fail()
		}
	}
	if count == 0 {
		d.fail()
	}
}

// name reads a name.
func (d *quickName) name() (t quickText, f quickFunction) {
	d.enter()
	defer d.leave()
	t = quickText{from: len(d.out)}
	params, isCandidate := d.params, true
	switch c := d.peek(); {
	case c == 'N':
		return d.nested()
	case c == 'Z':
		return d.local()
	case c == 'S' && d.second() == 't':
		d.skip(2)
		d.write("std::")
		d.unqualified(&t)
	case c == 'S':
		t, isCandidate = d.substitution(false), false
	default:
		d.unqualified(&t)
	}
	if d.peek() == 'I' {
		if isCandidate {
			d.add(t, params)
			d.arguments(&f)
		} else {
			d.argumentsOf(&t, &f)
		}
	}
	return t, f
}

// nested reads a name with a path.
func (d *quickName) nested() (t quickText, f quickFunction) {
	d.expect('N')
	isVolatile := d.peek() == 'V'
	if isVolatile {
		d.skip(1)
	}
	if d.peek() == 'K' {
		d.skip(1)
		f.suffix = " const"
	}
	if isVolatile {
		f.suffix += " volatile"
	}
	switch d.peek() {
	case 'R':
		d.skip(1)
		f.suffix += " &"
	case 'O':
		d.skip(1)
		f.suffix += " &&"
	}
	t = quickText{from: len(d.out)}
	params := d.params
	for d.rest != "" && d.peek() != 'E' {
		c := d.peek()
		d.part(&t, &f, c)
		if c != 'S' && d.peek() != 'E' {
			d.add(t, params)
		}
	}
	if len(d.out) == t.from {
		d.fail()
	}
	d.expect('E')
	return t, f
}

// part reads a part of a path, or the arguments of one, which begins with c.
func (d *quickName) part(t *quickText, f *quickFunction, c byte) {
	isFirst := len(d.out) == t.from
	switch c {
	case 'I':
		if isFirst || f.isTemplate {
			d.fail()
			return
		}
		d.arguments(f)
		return
	case 'S':
		if !isFirst {
			d.fail()
		} else if d.second() == 't' {
			d.skip(2)
			d.write("std")
		} else if *t = d.substitution(true); t.declarator != 0 {
			d.fail()
		}
		return
	}
	if !isFirst {
		d.write("::")
	}
	f.isTemplate = false
	if c == 'C' || c == 'D' {
		d.special(t, f, c)
		return
	}
	f.isSpecial = false
	d.unqualified(t)
}

// special reads a constructor or a destructor, which has the name before it.
func (d *quickName) special(t *quickText, f *quickFunction, c byte) {
	kinds := "12345"
	if c == 'D' {
		kinds = "01245"
	}
	if f.isSpecial || t.nameEnd == 0 || !strings.Contains(kinds, string(rune(d.second()))) {
		d.fail()
		return
	}
	d.skip(2)
	if c == 'D' {
		d.write("~")
	}
	d.write(string(d.out[t.from+t.name : t.from+t.nameEnd]))
	d.tags()
	f.isSpecial = true
}

// local reads a name in a function.
func (d *quickName) local() (t quickText, f quickFunction) {
	t = quickText{from: len(d.out)}
	d.expect('Z')
	d.encoding()
	d.expect('E')
	if c := d.peek(); c == 's' || c == 'd' {
		d.fail()
	}
	d.write("::")
	n, f := d.name()
	shift := n.from - t.from
	t.name, t.nameEnd = n.name+shift, n.nameEnd+shift
	d.discriminator()
	return t, f
}

// discriminator passes the number of a local name over.
func (d *quickName) discriminator() {
	switch c := d.peek(); {
	case isDigit(c):
		d.fail()
	case c == '_':
		d.skip(1)
		isLong := d.peek() == '_'
		if isLong {
			d.skip(1)
		}
		if n := d.number(); isLong && n >= 10 {
			d.expect('_')
		}
	}
}

// unqualified reads a part of a path, which it makes the last one of t.
func (d *quickName) unqualified(t *quickText) {
	t.name = len(d.out) - t.from
	switch c := d.peek(); {
	case isDigit(c):
		d.source()
	case isLower(c):
		d.operator()
	case c == 'L':
		d.skip(1)
		d.source()
		if c := d.peek(); c == '_' || isDigit(c) {
			d.fail()
		}
	case c == 'U' && d.second() == 'l':
		d.closure()
	case c == 'U' && d.second() == 't':
		d.skip(2)
		from, params := len(d.out), d.params
		d.numbered("'unnamed", d.compact())
		d.add(quickText{from: from, nameEnd: len(d.out) - from}, params)
	default:
		d.fail()
	}
	t.nameEnd = len(d.out) - t.from
	d.tags()
}

// tags reads ABI tags.
func (d *quickName) tags() {
	for d.peek() == 'B' {
		d.skip(1)
		d.write("[abi:")
		d.source()
		d.write("]")
	}
}

// source reads an identifier.
func (d *quickName) source() {
	n := d.number()
	if n == 0 || n > len(d.rest) {
		d.fail()
		return
	}
	text := d.rest[:n]
	d.skip(n)
	if rest, ok := strings.CutPrefix(text, "_GLOBAL_"); ok && len(rest) > 2 && strings.IndexByte("._$", rest[0]) >= 0 && rest[1] == 'N' {
		text = "(anonymous namespace)"
	}
	d.write(text)
}

// numbered writes a text for something without a name, with its number.
func (d *quickName) numbered(text string, number int) {
	d.write(text)
	if number > 0 {
		d.write(strconv.Itoa(number - 1))
	}
	d.write("'")
}

// closure reads the type of a lambda.
func (d *quickName) closure() {
	d.skip(2)
	from, params := len(d.out), d.params
	d.parameters(false)
	if d.params != params { // they may be its own
		d.fail()
		return
	}
	d.expect('E')
	number := d.compact()
	moved := len(d.saved)
	d.saved = append(d.saved, d.out[from:]...)
	d.out = d.out[:from]
	d.numbered("'lambda", number)
	d.write("(")
	d.write(string(d.saved[moved:]))
	d.write(")")
	d.saved = d.saved[:moved]
}

// quickOperators are the operators that are names, without conversions and literals.
var quickOperators = map[string]string{
	"aN": "&=", "aS": "=", "aa": "&&", "ad": "&", "an": "&", "cl": "()", "cm": ",", "co": "~", "dV": "/=", "da": " delete[]", "de": "*",
	"dl": " delete", "dv": "/", "eO": "^=", "eo": "^", "eq": "==", "ge": ">=", "gt": ">", "ix": "[]", "lS": "<<=", "le": "<=", "ls": "<<", "lt": "<",
	"mI": "-=", "mL": "*=", "mi": "-", "ml": "*", "mm": "--", "na": " new[]", "ne": "!=", "ng": "-", "nt": "!", "nw": " new", "oR": "|=",
	"oo": "||", "or": "|", "pL": "+=", "pl": "+", "pm": "->*", "pp": "++", "ps": "+", "pt": "->", "rM": "%=", "rS": ">>=", "rm": "%", "rs": ">>", "ss": "<=>",
}

// operator reads an operator.
func (d *quickName) operator() {
	if len(d.rest) < 2 || quickOperators[d.rest[:2]] == "" {
		d.fail()
		return
	}
	d.write("operator")
	d.write(quickOperators[d.rest[:2]])
	d.skip(2)
}

// clones reads the suffixes of copies of a function.
func (d *quickName) clones() {
	for c := d.second(); d.peek() == '.' && (isLower(c) || c == '_' || isDigit(c)); c = d.second() {
		n := 2
		for n < len(d.rest) && (isLower(d.rest[n]) || isDigit(d.rest[n]) || d.rest[n] == '_') {
			n++
		}
		for n+1 < len(d.rest) && d.rest[n] == '.' && isDigit(d.rest[n+1]) {
			for n += 2; n < len(d.rest) && isDigit(d.rest[n]); n++ {
			}
		}
		d.write(" (" + d.rest[:n] + ")")
		d.skip(n)
	}
}
