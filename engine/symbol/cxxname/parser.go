// SPDX-License-Identifier: Apache-2.0

package cxxname

import "strings"

const (
	// maxDepth bounds how deep the parts of a name nest.
	maxDepth = 1024
	// maxNodes bounds the parts of a name that are copied for references back.
	maxNodes = 1 << 16
)

// A parser reads a mangled name (Itanium C++ ABI, 5.1). Once something cannot be
// read, failed is set, and all that follows reads nothing.
type parser struct {
	reading reading
	text    string
	at      int
	depth   int
	failed  bool
	nodes   int
	copies  int // parts that were looked at for copies
	slab    []node
	none    node // what is given after a failure
	subs    []*node

	// Of LLVM's reading: what template parameters stand for, by level, and the
	// arguments that are being read; see templates.go.
	levels         []*parameters
	outer          *parameters
	lambdaLevel    int // where the parameters of a lambda are; -1 outside of one
	forwards       []*node
	isForward      bool // a parameter may refer to arguments that follow
	hasNoArguments bool // arguments after a type are not its own
	isSymbolic     bool // parameters keep their mangled names
	invented       [3]int

	// Of binutils' reading.
	last           *node // the name that a constructor has
	isExpression   bool
	isConversion   bool
	hasOldScopes   bool // sr is read as old compilers wrote it
	hasTriedScopes bool
}

// A reading says whose reading of names is followed where tools differ.
type reading uint8

const (
	readLLVM reading = iota
	readGNU
	// readABI is LLVM's reading with two differences: references back to template
	// parameters have the meaning that the ABI gives them, and names that LLVM
	// does not read are read.
	readABI
)

func newParser(text string, r reading) *parser {
	return &parser{reading: r, text: text, lambdaLevel: -1, outer: &parameters{}}
}

func (p *parser) isGNU() bool { return p.reading == readGNU }

// fail notes that the name cannot be read.
func (p *parser) fail() *node {
	p.failed = true
	p.at = len(p.text)
	return &p.none
}

func (p *parser) node(n node) *node {
	if len(p.slab) == 0 {
		p.slab = make([]node, 16)
	}
	m := &p.slab[0]
	p.slab = p.slab[1:]
	*m = n
	if p.nodes++; p.nodes > maxNodes {
		p.fail()
	}
	return m
}

func (p *parser) name(text string) *node { return p.node(node{kind: kindName, text: text}) }

// enter goes one level down; leave must follow.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
}

func (p *parser) leave() { p.depth-- }

// peek is the byte n behind the next one; 0 behind the end.
func (p *parser) peek(n int) byte {
	if p.at+n >= len(p.text) {
		return 0
	}
	return p.text[p.at+n]
}

func (p *parser) has(prefix string) bool { return strings.HasPrefix(p.text[p.at:], prefix) }

// take passes over a text if it is next.
func (p *parser) take(prefix string) bool {
	if !p.has(prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

// expect passes over a text that must be there.
func (p *parser) expect(prefix string) {
	if !p.take(prefix) {
		p.fail()
	}
}

// isEnd says whether a list ends here, which it does after a failure too.
func (p *parser) isEnd(end string) bool { return p.take(end) || p.failed }

func (p *parser) substitutable(n *node) *node {
	p.subs = append(p.subs, n)
	return n
}

// digits reads a number, with an n before it where it is negative. It is empty
// where none is there.
func (p *parser) digits(negative bool) string {
	from := p.at
	if negative {
		p.take("n")
	}
	first := p.at
	for isDigit(p.peek(0)) {
		p.at++
	}
	if p.at == first {
		p.at = from
	}
	return p.text[from:p.at]
}

// number reads a number that must be there.
func (p *parser) number() int {
	digits := p.digits(false)
	if digits == "" || len(digits) > 9 {
		p.fail()
		return 0
	}
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

// compact reads a number and an underscore, where 0 is left out: _, 0_, 1_.
func (p *parser) compact() int {
	if p.take("_") {
		return 0
	}
	n := p.number() + 1
	p.expect("_")
	return n
}

// identifier reads the length of a name and the name.
func (p *parser) identifier() string {
	n := p.number()
	if n == 0 || n > len(p.text)-p.at {
		p.fail()
		return ""
	}
	p.at += n
	return p.text[p.at-n : p.at]
}

// sequence reads a number of the base 36, as references back have it.
func (p *parser) sequence() (n int, ok bool) {
	for ; ; p.at++ {
		c := p.peek(0)
		switch {
		case isDigit(c):
			n = n*36 + int(c-'0')
		case c >= 'A' && c <= 'Z':
			n = n*36 + int(c-'A') + 10
		default:
			return n, ok
		}
		if ok = true; n > len(p.text) {
			p.fail()
			return 0, true
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// A state has what the name of a function tells about how its type is mangled.
type state struct {
	isConversion bool // constructors and destructors too: no result is written
	hasArguments bool // ends with template arguments
	hasThis      bool // its object is a parameter
	quals        qualifiers
	forwards     int
}

// mangled reads a whole name; nil where it is none.
func (p *parser) mangled() *node {
	var n *node
	switch {
	case p.take("___Z"), p.take("____Z"):
		n = p.encoding(false)
		p.expect("_block_invoke")
		if number := p.take("_"); p.digits(false) == "" && number {
			p.fail()
		}
		n = p.node(node{kind: kindSpecial, text: "invocation function for block in ", a: n})
		if p.peek(0) == '.' {
			p.at = len(p.text)
		}
	case p.take("_Z"), !p.isGNU() && p.take("__Z"):
		n = p.encoding(true)
		n = p.clones(n)
	default:
		return nil
	}
	if p.failed || p.at < len(p.text) {
		return nil
	}
	return n
}

// clones reads the suffixes that compilers append to names of copies.
func (p *parser) clones(n *node) *node {
	if !p.isGNU() {
		if p.peek(0) == '.' {
			n = p.node(node{kind: kindClone, a: n, text: p.text[p.at:]})
			p.at = len(p.text)
		}
		return n
	}
	for p.peek(0) == '.' && isSuffix(p.peek(1)) {
		from := p.at
		for p.at += 2; isSuffix(p.peek(0)); {
			p.at++
		}
		for p.peek(0) == '.' && isDigit(p.peek(1)) {
			for p.at += 2; isDigit(p.peek(0)); {
				p.at++
			}
		}
		n = p.node(node{kind: kindClone, a: n, text: p.text[from:p.at]})
	}
	return n
}

func isSuffix(c byte) bool { return isLower(c) || isDigit(c) || c == '_' }
