// SPDX-License-Identifier: Apache-2.0

package cxxname

// A gnuPrinter writes a tree as binutils do. Pointers, qualifiers, functions and
// arrays around a type are handed down as modifiers, which the innermost type that
// knows their place writes. Template parameters are looked up in the templates
// that are being written.
type gnuPrinter struct {
	output
	final     byte // the last byte that was written, even if it was taken back
	modifiers *modifier
	templates *scope
	current   *node // the template around what is written
	path      *step // what is being written
	saved     map[*node]*scope
	// buffered is how much binutils would have in their buffer, and flushes how
	// often they would have emptied it.
	buffered, flushes int
	// pack is the element of packs that is written; -1: all of them.
	pack int
	// lambda is one more than the number of named template parameters of the lambda
	// whose parameters are written; 0 outside of one.
	lambda int
}

// A modifier is a part of a type that is written where its base type says.
type modifier struct {
	next      *modifier
	of        *node
	isPrinted bool
	templates *scope
}

// A scope is a template whose arguments parameters stand for.
type scope struct {
	next *scope
	of   *node // a kindTemplate; a kindLambda with declarations
}

// A step is a part on the way to what is written.
type step struct {
	parent *step
	of     *node
}

// maxGNU is the longest name that binutils' tools read.
const maxGNU = 1024

// GNU gives a mangled name of C++ as binutils' tools write it; false where they
// leave it as it is.
func GNU(name string) (string, bool) {
	if len(name) > maxGNU {
		return "", false
	}
	p := newParser(name, readGNU)
	n := p.mangled()
	if n == nil && p.hasTriedScopes {
		p = newParser(name, readGNU)
		p.hasOldScopes = true
		n = p.mangled()
	}
	if n == nil {
		return "", false
	}
	o := gnuPrinter{}
	o.print(n)
	return string(o.text), !o.failed && len(o.text) > 0
}

// gnuBuffer is how much binutils write before they empty their buffer. They take
// back a comma that nothing followed only while it is still in the buffer.
const gnuBuffer = 255

// fill notes that a text is written through the buffer.
func (o *gnuPrinter) fill(size int) {
	o.buffered += size
	for ; o.buffered > gnuBuffer; o.buffered -= gnuBuffer {
		o.flushes++
	}
}

func (o *gnuPrinter) byte(c byte) {
	o.final = c
	o.fill(1)
	o.output.byte(c)
}

func (o *gnuPrinter) string(s string) {
	if s != "" && !o.failed {
		o.final = s[len(s)-1]
		o.fill(len(s))
		o.output.string(s)
	}
}

func (o *gnuPrinter) print(n *node) {
	if n == nil || n.printing > 1 {
		o.fail()
		return
	}
	if !o.enter(n) {
		return
	}
	o.path = &step{o.path, n}
	o.node(n)
	o.path = o.path.parent
	o.leave(n)
}

// node writes a name or a type; see expression for the others.
func (o *gnuPrinter) node(n *node) {
	switch n.kind {
	case kindName, kindBuiltin, kindFixed, kindBool:
		o.string(n.text)
	case kindQualified, kindLocal:
		o.print(n.a)
		o.string("::")
		o.local(n.b)
	case kindEncoding:
		o.encoding(n)
	case kindTemplate:
		o.template(n)
	case kindParameter:
		o.parameter(n)
	case kindArguments:
		o.list(n.list)
	case kindStd:
		o.standard(n)
	case kindTagged:
		o.print(n.a)
		o.string("[abi:" + n.text + "]")
	case kindConstructor:
		o.print(n.a)
	case kindDestructor:
		o.byte('~')
		o.print(n.a)
	case kindOperator:
		o.operator(n.op)
	case kindConversion:
		o.string("operator ")
		o.conversion(n.a)
	case kindReference, kindRvalue:
		o.reference(n)
	case kindConst, kindVolatile, kindRestrict:
		if o.isRepeated(n) {
			o.print(n.a)
			return
		}
		o.modified(n, n.a)
	case kindPointer, kindComplex, kindImaginary, kindVendorQualifier, kindThis:
		o.modified(n, n.a)
	case kindMember, kindVector:
		o.modified(n, n.b)
	case kindFunction:
		o.function(n)
	case kindArray:
		o.array(n)
	default:
		o.rare(n)
	}
}

// rare writes the names and types that are rare.
func (o *gnuPrinter) rare(n *node) {
	switch n.kind {
	case kindUserLiteral:
		o.string(`operator"" `)
		o.subexpression(n.a)
	case kindVendorOperator:
		o.string("operator ")
		o.print(n.a)
	case kindDefaultArgument:
		o.local(n)
	case kindUnnamed:
		o.string("{unnamed type#" + decimal(n.num+1) + "}")
	case kindLambda:
		o.closure(n)
	case kindSpecial:
		o.string(n.text)
		o.print(n.a)
	case kindSpecial2:
		o.string(n.text)
		o.print(n.a)
		o.string("-in-")
		o.print(n.b)
	case kindTemporary:
		o.string("reference temporary #" + decimal(n.num) + " for ")
		o.print(n.a)
	case kindClone:
		o.print(n.a)
		o.string(" [clone " + n.text + "]")
	case kindBindings:
		o.byte('[')
		for i, b := range n.list {
			if i > 0 {
				o.string(", ")
			}
			o.print(b)
		}
		o.byte(']')
	case kindModule:
		o.module(n)
	case kindModuleEntity:
		o.print(n.a)
		o.byte('@')
		o.print(n.b)
	case kindVendor:
		o.string(n.text)
	case kindDecltype:
		o.string("decltype (")
		o.print(n.a)
		o.byte(')')
	case kindExpansion:
		o.expansion(n)
	default:
		o.expression(n)
	}
}

func (o *gnuPrinter) module(n *node) {
	if n.a != nil {
		o.print(n.a)
	}
	if n.flag {
		o.byte(':')
	} else if n.a != nil {
		o.byte('.')
	}
	o.print(n.b)
}

// local writes the name in a scope.
func (o *gnuPrinter) local(n *node) {
	if n.kind == kindDefaultArgument {
		o.string("{default arg#" + decimal(n.num+1) + "}::")
		n = n.b
	}
	o.print(n)
}

func (o *gnuPrinter) standard(n *node) {
	switch name := stdNames[n.sub]; n.sub {
	case 'a', 'b':
		o.string("std::" + name.long)
	default:
		o.string("std::" + name.long + "<char, std::char_traits<char>" + name.arguments + " >")
	}
}

// list writes arguments. What is empty leaves its comma behind where others
// follow.
func (o *gnuPrinter) list(list []*node) {
	if len(list) == 0 {
		return
	}
	o.print(list[0])
	if len(list) == 1 {
		return
	}
	if o.buffered >= gnuBuffer-1 {
		o.buffered = 0
		o.flushes++
	}
	o.string(", ")
	at, flushes := len(o.text), o.flushes
	o.list(list[1:])
	if len(o.text) == at && o.flushes == flushes && at >= 2 {
		o.text = o.text[:at-2]
		o.buffered -= 2
	}
}

// encoding writes a function: its name goes down to its type as a modifier.
func (o *gnuPrinter) encoding(n *node) {
	held := o.modifiers
	o.modifiers = nil
	var pushed []*modifier
	push := func(of *node) {
		m := &modifier{next: o.modifiers, of: of, templates: o.templates}
		o.modifiers = m
		pushed = append(pushed, m)
	}
	name := n.a
	push(name)
	for name.kind == kindThis {
		name = name.a
		push(name)
	}
	if name.kind == kindLocal {
		// Qualifiers of what is in a function belong here.
		inner := name.b
		if inner.kind == kindDefaultArgument {
			inner = inner.b
		}
		for ; inner.kind == kindThis; inner = inner.a {
			last := pushed[len(pushed)-1]
			top := &modifier{next: last, of: last.of, templates: last.templates}
			last.of = inner
			pushed = append(pushed, top)
			o.modifiers = top
		}
		name = inner
	}
	if len(pushed) > 4 {
		o.fail()
		return
	}
	templates := o.templates
	if name.kind == kindTemplate {
		o.templates = &scope{o.templates, name}
	}
	o.print(n.b)
	o.templates = templates
	for i := len(pushed) - 1; i >= 0; i-- {
		if m := pushed[i]; !m.isPrinted {
			o.byte(' ')
			o.modifier(m.of)
		}
	}
	o.modifiers = held
}

func (o *gnuPrinter) template(n *node) {
	held, current := o.modifiers, o.current
	o.modifiers, o.current = nil, n
	o.print(n.a)
	o.inAngles(n.b)
	o.modifiers, o.current = held, current
}

func (o *gnuPrinter) inAngles(arguments *node) {
	if o.final == '<' {
		o.byte(' ')
	}
	o.byte('<')
	o.print(arguments)
	if o.final == '>' {
		o.byte(' ')
	}
	o.byte('>')
}

// conversion writes the type of a conversion operator, in which the parameters of
// the template around it are known.
func (o *gnuPrinter) conversion(to *node) {
	templates := o.templates
	if o.current != nil {
		o.templates = &scope{o.templates, o.current}
	}
	if to.kind != kindTemplate {
		o.print(to)
		o.templates = templates
		return
	}
	o.print(to.a)
	o.templates = templates
	o.inAngles(to.b)
}

func (o *gnuPrinter) operator(op *operator) {
	o.string("operator")
	if isLower(op.symbol[0]) {
		o.byte(' ')
	}
	o.string(op.symbol)
}

// lookup returns what a template parameter stands for, which is a list for a
// pack; nil where it is not known.
func (o *gnuPrinter) lookup(n *node) *node {
	if o.templates == nil {
		o.fail()
		return nil
	}
	arguments := o.templates.of.b
	if arguments == nil || n.num >= len(arguments.list) {
		return nil
	}
	return arguments.list[n.num]
}

// argument returns what lookup does, but for a pack the element that is being
// written.
func (o *gnuPrinter) argument(n *node) *node {
	a := o.lookup(n)
	if a == nil || a.kind != kindArguments || o.pack < 0 {
		return a
	}
	if o.pack >= len(a.list) {
		return nil
	}
	return a.list[o.pack]
}

func (o *gnuPrinter) parameter(n *node) {
	if o.lambda > 0 {
		o.lambdaParameter(n)
		return
	}
	a := o.argument(n)
	if a == nil {
		o.fail()
		return
	}
	// What it stands for may have parameters of a template further out.
	held := o.templates
	o.templates = held.next
	o.print(a)
	o.templates = held
}

// lambdaParameter writes a template parameter of a lambda: by its name, or as auto.
func (o *gnuPrinter) lambdaParameter(n *node) {
	if o.lambda <= n.num+1 {
		o.string("auto:" + decimal(n.num+1))
		return
	}
	decl := o.templates.of.decls[n.num]
	if decl.kind == kindPackDecl {
		decl = decl.a
	}
	o.lambdaName(decl, n.num)
}

func (o *gnuPrinter) lambdaName(decl *node, number int) {
	what := "$T"
	switch decl.kind {
	case kindValueDecl:
		what = "$N"
	case kindTemplateDecl:
		what = "$TT"
	}
	o.string(what + decimal(number))
}

// closure writes a lambda.
func (o *gnuPrinter) closure(n *node) {
	o.string("{lambda")
	lambda, templates := o.lambda, o.templates
	o.lambda = 0
	if len(n.decls) > 0 {
		o.templates = &scope{nil, n}
		o.byte('<')
		for i, decl := range n.decls {
			if o.lambda++; i > 0 {
				o.string(", ")
			}
			o.declaration(decl)
			o.byte(' ')
			if decl.kind == kindPackDecl {
				decl = decl.a
			}
			o.lambdaName(decl, i)
		}
		o.byte('>')
	}
	o.lambda++
	o.byte('(')
	o.list(n.list)
	o.lambda, o.templates = lambda, templates
	o.string(")#" + decimal(n.num+1) + "}")
}

func (o *gnuPrinter) declaration(n *node) {
	switch n.kind {
	case kindTypeDecl:
		o.string("typename")
	case kindValueDecl:
		o.print(n.b)
	case kindTemplateDecl:
		o.string("template<")
		for i, decl := range n.list {
			if i > 0 {
				o.string(", ")
			}
			o.declaration(decl)
		}
		o.string("> class")
	case kindPackDecl:
		o.declaration(n.a)
		o.string("...")
	}
}

// expansion writes a pattern for each element of the pack in it.
func (o *gnuPrinter) expansion(n *node) {
	var pack *node
	if o.lambda == 0 {
		pack = o.findPack(n.a, 0)
	}
	if pack == nil {
		o.subexpression(n.a)
		o.string("...")
		return
	}
	for i := range pack.list {
		o.pack = i
		if i > 0 {
			o.string(", ")
		}
		o.print(n.a)
	}
}

// findPack gives the first pack in a pattern; nil where there is none.
func (o *gnuPrinter) findPack(n *node, depth int) *node {
	if n == nil || o.failed {
		return nil
	}
	if o.steps++; o.steps > maxSteps || depth > maxDepth {
		o.fail()
		return nil
	}
	switch n.kind {
	case kindParameter:
		if a := o.lookup(n); a != nil && a.kind == kindArguments {
			return a
		}
		return nil
	case kindExpansion, kindLambda, kindName, kindTagged, kindOperator, kindBuiltin, kindStd, kindArgument, kindUnnamed,
		kindDefaultArgument, kindFixed:
		return nil
	}
	for _, part := range []*node{n.a, n.b, n.c} {
		if a := o.findPack(part, depth+1); a != nil {
			return a
		}
	}
	for _, part := range n.list {
		if a := o.findPack(part, depth+1); a != nil {
			return a
		}
	}
	return nil
}
