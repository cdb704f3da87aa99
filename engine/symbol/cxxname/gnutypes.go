// SPDX-License-Identifier: Apache-2.0

package cxxname

// push hands a part of a type down.
func (o *gnuPrinter) push(n *node) *modifier {
	o.modifiers = &modifier{next: o.modifiers, of: n, templates: o.templates}
	return o.modifiers
}

// modified writes a type with a modifier around it.
func (o *gnuPrinter) modified(n, inner *node) {
	m := o.push(n)
	o.print(inner)
	if !m.isPrinted {
		o.modifier(n)
	}
	o.modifiers = m.next
}

// isRepeated says whether a qualifier is among those that wait to be written
// already, as may happen with qualifiers of arrays.
func (o *gnuPrinter) isRepeated(n *node) bool {
	for m := o.modifiers; m != nil; m = m.next {
		if m.isPrinted {
			continue
		}
		switch m.of.kind {
		case kindConst, kindVolatile, kindRestrict:
		default:
			return false
		}
		if m.of.kind == n.kind {
			return true
		}
	}
	return false
}

// reference writes a reference. Where it refers to a template parameter, the
// parameter may itself stand for a reference. A parameter that was written
// before is looked up in the templates that were being written then.
func (o *gnuPrinter) reference(n *node) {
	templates := o.templates
	defer func() { o.templates = templates }()
	inner, to := n.a, n.a
	if o.lambda == 0 && to.kind == kindParameter {
		if saved, ok := o.saved[to]; !ok {
			if o.saved == nil {
				o.saved = make(map[*node]*scope)
			}
			o.saved[to] = o.templates
		} else if !o.isBelow(n, to) {
			o.templates = saved
		}
		if to = o.argument(to); to == nil {
			o.fail()
			return
		}
	}
	switch {
	case to.kind == kindReference || to.kind == n.kind:
		n, inner = to, to.a
	case to.kind == kindRvalue:
		inner = to.a
	}
	o.modified(n, inner)
}

// isBelow says whether a parameter, or an outer instance of the reference to it,
// is being written.
func (o *gnuPrinter) isBelow(reference, parameter *node) bool {
	for s := o.path; s != nil; s = s.parent {
		if s.of == parameter || s.of == reference && s != o.path {
			return true
		}
	}
	return false
}

// modifier writes a modifier that no type knew a place for.
func (o *gnuPrinter) modifier(n *node) {
	switch n.kind {
	case kindConst, kindVolatile, kindRestrict, kindComplex, kindImaginary:
		o.string(modifierTexts[n.kind])
	case kindThis:
		o.string(n.text)
		if n.b != nil {
			o.byte('(')
			o.print(n.b)
			o.byte(')')
		}
	case kindVendorQualifier:
		o.string(" " + n.text)
		if n.b != nil {
			o.inAngles(n.b)
		}
	case kindPointer:
		o.byte('*')
	case kindReference:
		o.byte('&')
	case kindRvalue:
		o.string("&&")
	case kindMember:
		if o.final != '(' {
			o.byte(' ')
		}
		o.print(n.a)
		o.string("::*")
	case kindEncoding:
		o.print(n.a)
	case kindVector:
		o.string(" __vector(")
		o.print(n.a)
		o.byte(')')
	default:
		o.print(n)
	}
}

// writeModifiers writes modifiers from the innermost on; those of a function itself only
// where suffix is set.
func (o *gnuPrinter) writeModifiers(m *modifier, suffix bool) {
	for ; m != nil && !o.failed; m = m.next {
		if m.isPrinted || !suffix && m.of.kind == kindThis {
			continue
		}
		m.isPrinted = true
		held := o.templates
		o.templates = m.templates
		switch m.of.kind {
		case kindFunction:
			o.functionWith(m.of, m.next)
			o.templates = held
			return
		case kindArray:
			o.arrayWith(m.of, m.next)
			o.templates = held
			return
		case kindLocal:
			o.localModifier(m.of)
			o.templates = held
			return
		}
		o.modifier(m.of)
		o.templates = held
	}
}

// localModifier writes the name of a function in a function, whose qualifiers are
// written behind its parameters.
func (o *gnuPrinter) localModifier(n *node) {
	held := o.modifiers
	o.modifiers = nil
	o.print(n.a)
	o.modifiers = held
	o.string("::")
	name := n.b
	if name.kind == kindDefaultArgument {
		o.string("{default arg#" + decimal(name.num+1) + "}::")
		name = name.b
	}
	for name.kind == kindThis {
		name = name.a
	}
	o.print(name)
}

// function writes the type of a function, whose parameters may stand within its
// result.
func (o *gnuPrinter) function(n *node) {
	if n.a != nil {
		m := o.push(n)
		o.print(n.a)
		o.modifiers = m.next
		if m.isPrinted {
			return
		}
		o.byte(' ')
	}
	o.functionWith(n, o.modifiers)
}

// functionWith writes the parameters of a function with modifiers around what is
// declared.
func (o *gnuPrinter) functionWith(n *node, m *modifier) {
	brackets, space := false, false
	for i := m; i != nil && !i.isPrinted && !brackets; i = i.next {
		switch i.of.kind {
		case kindPointer, kindReference, kindRvalue:
			brackets = true
		case kindConst, kindVolatile, kindRestrict, kindVendorQualifier, kindComplex, kindImaginary, kindMember:
			brackets, space = true, true
		}
	}
	if brackets {
		if o.final != '(' && o.final != '*' {
			space = true
		}
		if space && o.final != ' ' {
			o.byte(' ')
		}
		o.byte('(')
	}
	held := o.modifiers
	o.modifiers = nil
	o.writeModifiers(m, false)
	if brackets {
		o.byte(')')
	}
	o.byte('(')
	o.list(n.list)
	o.byte(')')
	o.writeModifiers(m, true)
	o.modifiers = held
}

// array writes an array, whose qualifiers are those of its elements.
func (o *gnuPrinter) array(n *node) {
	held := o.modifiers
	own := o.push(n)
	var qualifiers []*modifier
	for m := held; m != nil; m = m.next {
		if k := m.of.kind; k != kindConst && k != kindVolatile && k != kindRestrict {
			break
		}
		if !m.isPrinted {
			moved := *m
			moved.next = o.modifiers
			o.modifiers = &moved
			qualifiers = append(qualifiers, &moved)
			m.isPrinted = true
		}
	}
	if len(qualifiers) > 3 {
		o.fail()
		return
	}
	o.print(n.b)
	o.modifiers = held
	if own.isPrinted {
		return
	}
	for i := len(qualifiers) - 1; i >= 0; i-- {
		o.modifier(qualifiers[i].of)
	}
	o.arrayWith(n, o.modifiers)
}

// arrayWith writes the dimension of an array with modifiers around what is
// declared.
func (o *gnuPrinter) arrayWith(n *node, m *modifier) {
	space, brackets := true, false
	for i := m; i != nil; i = i.next {
		if i.isPrinted {
			continue
		}
		if i.of.kind == kindArray {
			space = false
		} else {
			brackets = true
		}
		break
	}
	if brackets {
		o.string(" (")
	}
	o.writeModifiers(m, false)
	if brackets {
		o.byte(')')
	}
	if space {
		o.byte(' ')
	}
	o.byte('[')
	if n.a != nil {
		o.print(n.a)
	}
	o.byte(']')
}
