// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"
	"sync"
)

const (
	maxQuickDepth = 64      // of nested types and names
	maxQuickText  = 1 << 14 // bytes of a result, with what it is made of
)

// quickCpp demangles most names of C++, as the library does in LLVM's style, without a tree. It
// writes text while it reads, and refers back to texts. ok is false for names that need more than
// that, and for names that are wrong: they are left to the library.
func quickCpp(name string) (readable string, ok bool) {
	rest, isCpp := strings.CutPrefix(name, "_Z")
	if !isCpp {
		return "", false
	}
	d := quickNames.Get().(*quickName)
	defer quickNames.Put(d)
	*d = quickName{rest: rest, out: d.out[:0], saved: d.saved[:0], subs: d.subs[:0], args: d.args[:0], list: d.list[:0]}
	d.encoding()
	d.clones()
	if d.rest != "" || d.isFailed {
		return "", false
	}
	return string(d.out), true
}

var quickNames = sync.Pool{New: func() any { return new(quickName) }}

// quickName is a name that quickCpp reads.
type quickName struct {
	rest     string // not read yet
	out      []byte
	saved    []byte      // the texts of subs and args
	subs     []quickText // candidates for substitution
	args     []quickText // of templates
	list     []quickText // the arguments of templates that are not complete
	depth    int
	isFailed bool

	scope quickScope
	// scopes is the number of functions of templates whose parameters are being read, and lastScope
	// the number of them so far.
	scopes, lastScope int
	params            int // parameters of templates that were read

	inPack   bool // the type being read is repeated for the arguments of a pack
	packArg  int  // the index of the parameter that stands for the pack; -1: not known yet
	packItem int
}

// quickScope is a function whose parameters are being read.
type quickScope struct {
	number     int // 0: it is no template
	args, ends int // the arguments of its template in quickName.args
}

// quickText is a text: in quickName.out until its end, or in quickName.saved.
type quickText struct {
	from, to int
	// name and nameEnd are the last part of a path without arguments, counted from the beginning.
	name, nameEnd int
	// declarator is where the declarators of a function's type belong, counted from the beginning;
	// 0: at the end.
	declarator int
	isFunction bool // none was written yet
	scope      int  // the function whose template parameters are in it; 0: none are
	isEmpty    bool // an expansion of no arguments
	isPack     bool // of quickName.args[first:end]
	first, end int
	isOnce     bool // cannot be referred to
}

func (d *quickName) fail() {
	d.isFailed = true
	d.rest = ""
}

// peek returns the next character; 0 at the end.
func (d *quickName) peek() byte {
	if d.rest == "" {
		return 0
	}
	return d.rest[0]
}

// second returns the character after the next one.
func (d *quickName) second() byte {
	if len(d.rest) < 2 {
		return 0
	}
	return d.rest[1]
}

// skip passes n characters over.
func (d *quickName) skip(n int) {
	if n > len(d.rest) {
		d.fail()
		return
	}
	d.rest = d.rest[n:]
}

// expect passes a character over.
func (d *quickName) expect(c byte) {
	if d.peek() != c {
		d.fail()
		return
	}
	d.skip(1)
}

func (d *quickName) write(s string) {
	if d.out = append(d.out, s...); len(d.out)+len(d.saved) > maxQuickText {
		d.fail()
	}
}

// enter counts nested calls; leave ends one.
func (d *quickName) enter() {
	if d.depth++; d.depth > maxQuickDepth {
		d.fail()
	}
}

func (d *quickName) leave() { d.depth-- }

// save copies a text that ends d.out.
func (d *quickName) save(t quickText, params int) quickText {
	if d.params != params {
		t.scope = d.scope.number
	}
	text := d.out[t.from:]
	t.from = len(d.saved)
	d.saved = append(d.saved, text...)
	t.to = len(d.saved)
	return t
}

// add makes a text that ends d.out a candidate for substitution. params is d.params before it.
func (d *quickName) add(t quickText, params int) {
	if d.isFailed {
		return
	}
	t = d.save(t, params)
	t.isOnce = t.isOnce || d.inPack
	d.subs = append(d.subs, t)
}

// again writes a saved text, and returns it as a text at the end of d.out.
func (d *quickName) again(t quickText) quickText {
	if t.isOnce || t.isPack || t.isEmpty || t.scope != 0 && (t.scope != d.scope.number || d.scopes != 1) {
		d.fail()
		return quickText{}
	}
	if t.scope != 0 {
		d.params++
	}
	from := len(d.out)
	d.write(string(d.saved[t.from:t.to]))
	t.from, t.to, t.scope = from, 0, 0
	return t
}

// number reads a decimal number.
func (d *quickName) number() int {
	n, length := 0, 0
	for length < len(d.rest) && length < 6 && d.rest[length] >= '0' && d.rest[length] <= '9' {
		n = n*10 + int(d.rest[length]-'0')
		length++
	}
	if length == 0 || length == 6 {
		d.fail()
		return 0
	}
	d.skip(length)
	return n
}

// compact reads a number that an underscore ends; without one it is 0, and others count from 1.
func (d *quickName) compact() int {
	n := 0
	if d.peek() != '_' {
		n = d.number() + 1
	}
	d.expect('_')
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
