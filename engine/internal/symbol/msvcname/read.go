// SPDX-License-Identifier: Apache-2.0

package msvcname

import "strings"

// reader reads a name from front to back. After isBad is set nothing that it returns counts.
type reader struct {
	rest  string
	isBad bool
	depth int
	work  int // what may still be written to compare names, in bytes
	back  references
}

// references have the names, and the types of parameters, that digits refer back to. The arguments of
// a template have their own.
type references struct {
	names []named
	types []node
}

// named is a name that a digit may refer to.
type named struct {
	key string // the text by which it is the same as another one
	is  *identifier
}

// bad ends the reading.
func (r *reader) bad() {
	r.isBad, r.rest = true, ""
}

// cut removes a prefix; false where the rest has another one.
func (r *reader) cut(prefix string) bool {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	r.rest = rest
	return ok
}

// must removes a prefix that has to be there.
func (r *reader) must(prefix string) {
	if !r.cut(prefix) {
		r.bad()
	}
}

// next removes a character; 0 and bad where there is none.
func (r *reader) next() byte {
	if r.rest == "" {
		r.bad()
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

// peek returns the character that follows; 0 where there is none.
func (r *reader) peek() byte {
	if r.rest == "" {
		return 0
	}
	return r.rest[0]
}

// more reports whether a list goes on; it removes the mark that ends it.
func (r *reader) more() bool { return !r.isBad && !r.cut(ended) }

// deeper begins to read something that may contain itself; false where that is too deep. The caller
// calls up at its end.
func (r *reader) deeper() bool {
	if r.depth++; r.depth > maxDepth {
		r.bad()
	}
	return !r.isBad
}

func (r *reader) up() { r.depth-- }

// lookUp removes the longest code of at most a number of characters that a table has.
func lookUp[T any](r *reader, table map[string]T, most int) (value T, ok bool) {
	for n := min(most, len(r.rest)); n > 0; n-- {
		if value, ok = table[r.rest[:n]]; ok {
			r.rest = r.rest[n:]
			return value, true
		}
	}
	return value, false
}

// magnitude reads a number: a digit for 1 to 10, or letters for hexadecimal digits up to a mark.
func (r *reader) magnitude() (n uint64, isNegative bool) {
	isNegative = r.cut("?")
	if c := r.peek(); isDigit(c) {
		r.rest = r.rest[1:]
		return uint64(c-'0') + 1, isNegative
	}
	for r.more() {
		c := r.next()
		if c < 'A' || c > 'P' {
			r.bad()
		}
		n = n<<4 | uint64(c-'A')
	}
	return n, isNegative
}

// unsigned reads a number that is not negative.
func (r *reader) unsigned() uint64 {
	n, isNegative := r.magnitude()
	if isNegative {
		r.bad()
	}
	return n
}

// signed reads a number.
func (r *reader) signed() int64 {
	n, isNegative := r.magnitude()
	if n > 1<<63-1 {
		r.bad()
	}
	if isNegative {
		return -int64(n)
	}
	return int64(n)
}

// reference reads a digit that refers back to one of a number of things; false where none follows.
func (r *reader) reference(count int) (index int, ok bool) {
	c := r.peek()
	if !isDigit(c) {
		return 0, false
	}
	if index = int(c - '0'); index >= count {
		r.bad()
		return 0, false
	}
	r.rest = r.rest[1:]
	return index, true
}

// remember keeps a name for digits to refer to, unless there is one of the same key.
func (r *reader) remember(key string, is *identifier) {
	if r.isBad || len(r.back.names) == maxNames {
		return
	}
	for _, n := range r.back.names {
		if n.key == key {
			return
		}
	}
	r.back.names = append(r.back.names, named{key, is})
}

// rememberWritten is remember for a name whose key is how it reads.
func (r *reader) rememberWritten(is *identifier) {
	if r.isBad || len(r.back.names) == maxNames {
		return
	}
	var w writer
	w.node(is)
	if r.work -= len(w.out); r.work < 0 || w.isFull {
		r.bad()
		return
	}
	key := string(w.out)
	r.remember(key, &identifier{text: key})
}
