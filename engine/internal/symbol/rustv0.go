// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// demangleRust demangles a name of Rust's v0 mangling (RFC 2603). It works around
// three faults of the library, which docs/upstream.md describes: digits behind an
// empty identifier (a closure's) are read as one number with its length; an empty
// identifier leaves its "::" behind; constants of 128 bits whose low half is zero
// are refused.
func demangleRust(name string, style demangle.Option) string {
	marked, standIns := markRust(name)
	readable, ok := read(marked, style)
	if !ok {
		return name
	}
	if hasEmptyPath(readable) {
		readable = strings.TrimSuffix(emptyPaths.Replace(readable), "::")
	}
	for digits, standIn := range standIns {
		readable = strings.ReplaceAll(readable, "0x"+standIn, "0x"+digits)
	}
	return readable
}

// emptyPaths removes the "::" before an empty identifier.
var emptyPaths = strings.NewReplacer("::::", "::", "::>", ">", "::,", ",", "::)", ")", "::]", "]", ":: ", " ", "::;", ";")

// hasEmptyPath reports whether a name has a "::" that emptyPaths may remove, or one at its end.
func hasEmptyPath(readable string) bool {
	for {
		_, rest, ok := strings.Cut(readable, "::")
		if !ok {
			return false
		}
		if rest == "" || strings.IndexByte(":>,)] ;", rest[0]) >= 0 {
			return true
		}
		readable = rest
	}
}

// maxRustDepth bounds how deep paths and types nest.
const maxRustDepth = 400

// rustLayout finds the parts of a v0 name that must be marked. It follows the grammar,
// since digits and letters mean different things in different places.
type rustLayout struct {
	text      string // behind _R
	offset    int
	depth     int
	failed    bool
	empty     []int        // offsets of empty identifiers' lengths that a digit follows
	backrefs  []rustNumber // numbers of back references
	constants []string     // digits of constants that the library refuses
}

// rustNumber is a number of base 62 in text[start:end], its terminator included.
type rustNumber struct{ start, end, value int }

// markRust returns a name in which each empty identifier ends in an underscore and back
// references are adjusted to the new offsets, and the replaced digits of constants by their
// replacement. A name that does not follow the grammar is returned unchanged.
func markRust(name string) (string, map[string]string) {
	end := len(name)
	if i := strings.IndexAny(name, ".$"); i >= 0 {
		end = i
	}
	r := rustLayout{text: name[2:end]}
	r.path()
	if r.offset < len(r.text) { // the crate that instantiated it
		r.path()
	}
	if r.failed || r.offset < len(r.text) || len(r.empty)+len(r.constants) == 0 {
		return name, nil
	}
	text := r.text
	standIns := make(map[string]string, len(r.constants))
	for i, digits := range r.constants {
		standIn := fmt.Sprintf("%s%04x", strings.Repeat("f", len(digits)-4), 0xfffe-i)
		if strings.Contains(text, standIn) || i > 0xfff {
			return name, nil
		}
		standIns[digits] = standIn
		text = strings.ReplaceAll(text, digits+"_", standIn+"_")
	}
	return "_R" + r.shift(text) + name[end:], standIns
}

// shift inserts the underscores, and moves back references with their targets.
// Longer numbers move the text behind them in turn, so it repeats until nothing grows.
func (r *rustLayout) shift(text string) string {
	inserted := make([]int, len(text)) // bytes behind each offset
	for _, offset := range r.empty {
		inserted[offset] = 1
	}
	moved := make([]int, len(text)+1) // where each offset is then
	for grows := true; grows; {
		grows = false
		for i, n := range inserted {
			moved[i+1] = moved[i] + 1 + n
		}
		for _, n := range r.backrefs {
			if more := len(base62(moved[n.value])) - (n.end - n.start); more > inserted[n.start] {
				inserted[n.start], grows = more, true
			}
		}
	}
	var out strings.Builder
	written, refs := 0, r.backrefs
	for _, offset := range append(r.empty, len(text)) {
		for len(refs) > 0 && refs[0].start < offset {
			out.WriteString(text[written:refs[0].start])
			out.WriteString(base62(moved[refs[0].value]))
			written, refs = refs[0].end, refs[1:]
		}
		if offset == len(text) {
			out.WriteString(text[written:])
			break
		}
		out.WriteString(text[written : offset+1])
		out.WriteByte('_')
		written = offset + 1
	}
	return out.String()
}

// base62 writes a number of base 62 as the mangling does.
func base62(value int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if value == 0 {
		return "_"
	}
	text := "_"
	for value--; ; value /= 62 {
		text = digits[value%62:value%62+1] + text
		if value < 62 {
			return text
		}
	}
}

func (r *rustLayout) fail() { r.failed = true }

func (r *rustLayout) peek() byte {
	if r.failed || r.offset >= len(r.text) {
		return 0
	}
	return r.text[r.offset]
}

func (r *rustLayout) next() byte {
	c := r.peek()
	if c == 0 {
		r.fail()
		return 0
	}
	r.offset++
	return c
}

// take passes over a byte if it is there.
func (r *rustLayout) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.offset++
	return true
}

// until reads parts up to an E.
func (r *rustLayout) until(part func()) {
	for !r.failed && !r.take('E') {
		part()
	}
}

// nested reads one level down.
func (r *rustLayout) nested(part func()) {
	if r.depth++; r.depth > maxRustDepth {
		r.fail()
	}
	if !r.failed {
		part()
	}
	r.depth--
}

func (r *rustLayout) number() rustNumber {
	n := rustNumber{start: r.offset}
	for i := 0; ; i++ {
		var digit int
		switch c := r.next(); {
		case c == '_':
			if i > 0 {
				n.value++
			}
			n.end = r.offset
			return n
		case c >= '0' && c <= '9':
			digit = int(c - '0')
		case c >= 'a' && c <= 'z':
			digit = int(c-'a') + 10
		case c >= 'A' && c <= 'Z':
			digit = int(c-'A') + 36
		default:
			r.fail()
			return n
		}
		if n.value = n.value*62 + digit; n.value > 1<<40 {
			n.value = 1 << 40 // a disambiguator; no back reference leads there
		}
	}
}

func (r *rustLayout) backref() {
	n := r.number()
	if n.value >= n.start {
		r.fail()
		return
	}
	r.backrefs = append(r.backrefs, n)
}

func (r *rustLayout) disambiguator() {
	if r.take('s') {
		r.number()
	}
}

func (r *rustLayout) identifier() {
	r.take('u')
	length, start := 0, r.offset
	if r.take('0') {
		if c := r.peek(); c >= '0' && c <= '9' {
			r.empty = append(r.empty, start)
		}
	} else {
		for c := r.peek(); c >= '0' && c <= '9' && length <= maxMangled; c = r.peek() {
			length = length*10 + int(r.next()-'0')
		}
	}
	if r.offset == start {
		r.fail()
		return
	}
	r.take('_')
	if r.offset += length; r.offset > len(r.text) {
		r.fail()
	}
}

func (r *rustLayout) path() { r.nested(r.pathHere) }

func (r *rustLayout) pathHere() {
	switch r.next() {
	case 'C':
		r.disambiguator()
		r.identifier()
	case 'M':
		r.disambiguator()
		r.path()
		r.typ()
	case 'X':
		r.disambiguator()
		r.path()
		r.typ()
		r.path()
	case 'Y':
		r.typ()
		r.path()
	case 'N':
		r.next()
		r.path()
		r.disambiguator()
		r.identifier()
	case 'I':
		r.path()
		r.until(r.argument)
	case 'B':
		r.backref()
	default:
		r.fail()
	}
}

func (r *rustLayout) argument() {
	switch {
	case r.take('L'):
		r.number()
	case r.take('K'):
		r.constant()
	default:
		r.typ()
	}
}

func (r *rustLayout) typ() { r.nested(r.typeHere) }

func (r *rustLayout) typeHere() {
	switch c := r.next(); c {
	case 'A':
		r.typ()
		r.constant()
	case 'S', 'P', 'O':
		r.typ()
	case 'R', 'Q':
		if r.take('L') {
			r.number()
		}
		r.typ()
	case 'T':
		r.until(r.typ)
	case 'F':
		r.binder()
		r.take('U')
		if r.take('K') && !r.take('C') {
			r.identifier()
		}
		r.until(r.typ)
		r.typ()
	case 'D':
		r.binder()
		r.until(r.dynTrait)
		if r.take('L') {
			r.number()
		}
	case 'B':
		r.backref()
	case 'C', 'M', 'X', 'Y', 'N', 'I':
		r.offset--
		r.path()
	default:
		if c < 'a' || c > 'z' {
			r.fail()
		}
	}
}

func (r *rustLayout) binder() {
	if r.take('G') {
		r.number()
	}
}

func (r *rustLayout) dynTrait() {
	r.path()
	for r.take('p') {
		r.identifier()
		r.typ()
	}
}

func (r *rustLayout) constant() {
	switch {
	case r.take('p'):
		return
	case r.take('B'):
		r.backref()
		return
	}
	r.typ()
	r.take('n')
	start := r.offset
	for c := r.peek(); c >= '0' && c <= '9' || c >= 'a' && c <= 'f'; c = r.peek() {
		r.offset++
	}
	if digits := r.text[start:r.offset]; len(digits) > 16 && strings.HasSuffix(digits, strings.Repeat("0", 16)) {
		r.constants = append(r.constants, digits)
	}
	if !r.take('_') {
		r.fail()
	}
}
