// SPDX-License-Identifier: Apache-2.0

package msvcname

import "strconv"

// A node is a part of a name that was read.
type node interface {
	// before and after write what stands on both sides of the thing that a type or a function is of:
	// int (* and )[4].
	before(w *writer)
	after(w *writer)
}

// writer writes nodes.
type writer struct {
	Style
	out    []byte
	isFull bool // the result would be too long
}

// text appends text.
func (w *writer) text(s string) {
	if len(w.out)+len(s) >= maxResult {
		w.isFull = true
	}
	if !w.isFull {
		w.out = append(w.out, s...)
	}
}

// node writes a node.
func (w *writer) node(n node) {
	w.before(n)
	w.after(n)
}

// before writes what stands in front, unless the result is too long already: it may be far larger
// than the name, which refers back to its parts.
func (w *writer) before(n node) {
	if !w.isFull && n != nil {
		n.before(w)
	}
}

func (w *writer) after(n node) {
	if !w.isFull && n != nil {
		n.after(w)
	}
}

// list writes nodes with commas between them.
func (w *writer) list(nodes []node) {
	for i, n := range nodes {
		if i > 0 {
			w.text(", ")
		}
		w.node(n)
	}
}

// space writes a space where two words would become one.
func (w *writer) space() {
	if n := len(w.out); n > 0 && (isWord(w.out[n-1]) || w.out[n-1] == '>') {
		w.text(" ")
	}
}

func isWord(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numbers writes numbers with commas between them.
func (w *writer) numbers(list ...int64) {
	for i, n := range list {
		if i > 0 {
			w.text(", ")
		}
		w.text(strconv.FormatInt(n, 10))
	}
}

// whole writes a node in the default style.
func (w *writer) whole(n node) {
	style := w.Style
	w.Style = Style{}
	w.node(n)
	w.Style = style
}

// only is a part of a node that has nothing to write behind.
type only struct{}

func (only) after(*writer) {}

// text is a node that is a text alone.
type text struct {
	only
	s string
}

func (t *text) before(w *writer) { w.text(t.s) }
