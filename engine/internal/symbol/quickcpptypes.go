// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"strings"
)

// This file reads types, and the arguments of templates.

// quickBuiltin are the types of one letter.
var quickBuiltin = [256]string{
	'a': "signed char", 'b': "bool", 'c': "char", 'd': "double", 'e': "long double", 'f': "float", 'g': "__float128", 'h': "unsigned char", 'i': "int",
	'j': "unsigned int", 'l': "long", 'm': "unsigned long", 'n': "__int128", 'o': "unsigned __int128", 's': "short", 't': "unsigned short", 'v': "void",
	'w': "wchar_t", 'x': "long long", 'y': "unsigned long long", 'z': "...",
}

// quickSuffix are the suffixes of literals.
var quickSuffix = [256]string{'i': "", 'j': "u", 'l': "l", 'm': "ul", 'x': "ll", 'y': "ull"}

// kind reads a type.
func (d *quickName) kind() quickText {
	d.enter()
	defer d.leave()
	t := quickText{from: len(d.out)}
	params := d.params
	switch c := d.peek(); c {
	case 'K', 'V', 'P', 'R', 'O':
		d.skip(1)
		t = d.kind()
		d.declare(&t, c)
	case 'F':
		d.function(&t)
	case 'T':
		d.parameter(&t)
	case 'S':
		var isNew bool
		if t, isNew = d.substituted(); !isNew {
			return t
		}
	case 'U':
		if d.unqualified(&t); d.peek() == 'I' {
			d.fail()
		}
		return t
	case 'D':
		if t = d.twoLetters(); !t.isOnce {
			return t
		}
	case 'N', 'Z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		var f quickFunction
		if t, f = d.name(); f.suffix != "" {
			d.fail()
		}
	default:
		text := quickBuiltin[c]
		if text == "" {
			d.fail()
			return t
		}
		d.skip(1)
		d.write(text)
		return t
	}
	d.add(t, params)
	return t
}

// declare adds a qualifier, or makes a pointer or a reference of a type.
func (d *quickName) declare(t *quickText, c byte) {
	text := map[byte]string{'K': " const", 'V': " volatile", 'P': "*", 'R': "&", 'O': "&&"}[c]
	end := len(d.out)
	if t.declarator != 0 {
		end = t.from + t.declarator
	}
	isReference := end > t.from && d.out[end-1] == '&'
	switch {
	case d.isFailed:
		return
	case t.isEmpty, c == 'K' || c == 'V', isReference && c == 'P':
		if t.isEmpty || t.declarator != 0 || isReference || bytes.HasSuffix(d.out, []byte(" const")) || bytes.HasSuffix(d.out, []byte(" volatile")) {
			d.fail()
			return
		}
	case isReference && c == 'O':
		return // it stays what it is
	case isReference:
		if bytes.HasSuffix(d.out[:end], []byte("&&")) {
			d.out = append(d.out[:end-1], d.out[end:]...)
			if t.declarator != 0 {
				t.declarator--
			}
		}
		return
	}
	if t.isFunction {
		text = "(" + text + ")"
	}
	rest := len(d.out) - end
	d.write(text)
	if rest > 0 {
		copy(d.out[end+len(text):], d.out[end:end+rest])
		copy(d.out[end:], text)
		t.declarator += len(text)
	}
	if t.isFunction {
		t.declarator--
		t.isFunction = false
	}
}

// function reads the type of a function.
func (d *quickName) function(t *quickText) {
	d.skip(1)
	if r := d.kind(); r.declarator != 0 || r.isEmpty {
		d.fail()
	}
	d.write(" ")
	t.declarator, t.isFunction = len(d.out)-t.from, true
	d.write("(")
	d.parameters(true)
	d.write(")")
	d.expect('E')
}

// parameter reads a parameter of the function's template.
func (d *quickName) parameter(t *quickText) {
	d.skip(1)
	n := d.compact()
	s := d.scope
	if s.number == 0 || d.scopes != 1 || n >= s.ends-s.args || d.peek() == 'I' {
		d.fail()
		return
	}
	d.params++
	a := d.args[s.args+n]
	if a.isPack {
		if !d.inPack || d.packArg >= 0 && d.packArg != n {
			d.fail()
			return
		}
		d.packArg = n
		if a.first == a.end {
			return
		}
		if a.first+d.packItem >= a.end {
			d.fail()
			return
		}
		a = d.args[a.first+d.packItem]
	}
	if a.isPack || a.isEmpty {
		d.fail()
		return
	}
	a.scope = 0
	*t = d.again(a)
}

// quickStandard are the types of std with a letter.
var quickStandard = map[byte]string{'a': "allocator", 'b': "basic_string", 's': "string", 'i': "istream", 'o': "ostream", 'd': "iostream"}

// substitution reads a reference to a text before.
func (d *quickName) substitution(inPath bool) quickText {
	d.expect('S')
	c := d.peek()
	if name := quickStandard[c]; name != "" {
		d.skip(1)
		if next := d.peek(); next == 'B' || inPath && (next == 'C' || next == 'D') {
			d.fail()
		}
		t := quickText{from: len(d.out), name: len("std::"), nameEnd: len("std::") + len(name)}
		d.write("std::")
		d.write(name)
		return t
	}
	n := 0
	for length := 0; d.peek() != '_'; length++ {
		switch c := d.peek(); {
		case isDigit(c) && length < 3:
			n = n*36 + int(c-'0')
		case isUpper(c) && length < 3:
			n = n*36 + int(c-'A') + 10
		default:
			d.fail()
			return quickText{}
		}
		d.skip(1)
		if d.peek() == '_' {
			n++
		}
	}
	d.skip(1)
	if n >= len(d.subs) {
		d.fail()
		return quickText{}
	}
	return d.again(d.subs[n])
}

// substituted reads a type that begins with a reference to a text. isNew is set for one with arguments, or
// in std.
func (d *quickName) substituted() (t quickText, isNew bool) {
	if c := d.second(); c == 't' || quickStandard[c] != "" {
		left := len(d.rest)
		t, f := d.name()
		return t, c == 't' || f.isTemplate || left-len(d.rest) != 2
	}
	t = d.substitution(false)
	if d.peek() != 'I' {
		return t, false
	}
	var f quickFunction
	d.argumentsOf(&t, &f)
	return t, true
}

// twoLetters reads a type that begins with D; isOnce is set for the expansion of a pack.
func (d *quickName) twoLetters() quickText {
	t := quickText{from: len(d.out)}
	c := d.second()
	d.skip(2)
	switch c {
	case 'p':
		return d.expansion()
	case 'n':
		d.write("std::nullptr_t")
	case 'u':
		d.write("char8_t")
	case 's':
		d.write("char16_t")
	case 'i':
		d.write("char32_t")
	case 'a':
		d.write("auto")
	default:
		d.fail()
	}
	return t
}

// expansion reads a type that is repeated for the arguments of a pack.
func (d *quickName) expansion() quickText {
	t := quickText{from: len(d.out), isOnce: true}
	if d.inPack {
		d.fail()
		return t
	}
	d.inPack, d.packArg = true, -1
	rest, subs := d.rest, len(d.subs)
	for i, n := 0, 1; i < n && !d.isFailed; i++ {
		if i > 0 {
			d.write(", ")
			d.rest, d.subs = rest, d.subs[:subs]
		}
		d.packItem = i
		d.kind()
		if d.isFailed || d.packArg < 0 {
			d.fail()
			break
		}
		if a := &d.args[d.scope.args+d.packArg]; a.first < a.end {
			n = a.end - a.first
		} else {
			d.out, t.isEmpty = d.out[:t.from], true
		}
	}
	d.inPack = false
	return t
}

// arguments reads the arguments of a template.
func (d *quickName) arguments(f *quickFunction) {
	if len(d.out) > 0 && d.out[len(d.out)-1] == '<' {
		d.write(" ")
	}
	d.write("<")
	f.args, f.ends = d.argumentList()
	f.isTemplate = true
	d.write(">")
}

// argumentsOf reads the arguments of a template that was named before.
func (d *quickName) argumentsOf(t *quickText, f *quickFunction) {
	if d.isFailed || t.declarator != 0 || strings.IndexByte("&*", d.out[len(d.out)-1]) >= 0 {
		d.fail()
		return
	}
	d.arguments(f)
}

// argumentList reads arguments up to their end. They are d.args[first:end].
func (d *quickName) argumentList() (first, end int) {
	d.skip(1)
	base := len(d.list)
	isFirst := true
	for d.rest != "" && d.peek() != 'E' {
		before := len(d.out)
		if !isFirst {
			d.write(", ")
		}
		from := len(d.out)
		params := d.params
		t := d.argument()
		if d.isFailed {
			return 0, 0
		}
		if t.isPack {
			t.isEmpty = t.first == t.end
		}
		if t.from = from; t.isEmpty {
			d.out = d.out[:before]
			t.from = before
		} else {
			isFirst = false
		}
		d.list = append(d.list, d.save(t, params))
	}
	d.expect('E')
	first = len(d.args)
	d.args = append(d.args, d.list[base:]...)
	d.list = d.list[:base]
	return first, len(d.args)
}

// argument reads an argument of a template.
func (d *quickName) argument() (t quickText) {
	d.enter()
	defer d.leave()
	switch d.peek() {
	case 'L':
		d.literal()
		return quickText{}
	case 'I', 'J':
		t.isPack = true
		t.first, t.end = d.argumentList()
		for i := t.first; i < t.end; i++ {
			if a := &d.args[i]; a.isPack || a.isEmpty {
				d.fail()
			}
		}
		return t
	}
	t = d.kind()
	t.isOnce = false
	return t
}

// literal reads a number.
func (d *quickName) literal() {
	d.skip(1)
	c := d.peek()
	kind := ""
	switch {
	case quickSuffix[c] != "" || c == 'i' || c == 'b':
		d.skip(1)
		kind = quickSuffix[c]
	case strings.IndexByte("defgvz_Z", c) >= 0 || c == 'D':
		d.fail()
		return
	default:
		d.write("(")
		if t := d.kind(); t.declarator != 0 || t.isEmpty {
			d.fail()
		}
		d.write(")")
	}
	length := strings.IndexByte(d.rest, 'E')
	if length <= 0 {
		d.fail()
		return
	}
	value := d.rest[:length]
	d.skip(length + 1)
	isNegative := value[0] == 'n'
	if isNegative {
		value = value[1:]
	}
	if value == "" || strings.Trim(value, "0123456789") != "" {
		d.fail()
		return
	}
	if c == 'b' {
		if isNegative || value != "0" && value != "1" {
			d.fail()
			return
		}
		value = map[string]string{"0": "false", "1": "true"}[value]
	}
	if isNegative {
		d.write("-")
	}
	d.write(value)
	d.write(kind)
}
