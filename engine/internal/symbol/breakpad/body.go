// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"iter"
)

// place is a line of a file, by the file's number.
type place struct{ file, line int }

// body reads the records of a function one by one.
type body struct {
	f      *File
	offset uint64 // of the next record
	end    uint64
	first  fields // the FUNC record
	from   uint64 // a line record: its code; of a FUNC record: its start
	to     uint64

	// The last record read.
	isInline bool
	place    place // of the code, or of the inlined call
	hasFile  bool  // place has a file: the older form of INLINE has none
	depth    int
	origin   int
	ranges   fields // of an INLINE record
}

func (f *File) body(r *record) body {
	b := body{f: f, offset: r.offset(), end: r.offset() + r.length()}
	b.first = f.lineAt(b.offset)
	b.from = b.offset
	b.offset += uint64(len(b.first)) // the rest of the line is blank
	return b
}

// function reads the FUNC record.
func (b *body) function() (fn Function, ok bool) {
	l := b.first
	l.next()
	fn.Multiple = l.isMultiple()
	if fn.Start, fn.End, ok = l.span(); ok {
		fn.ParameterSize, ok = l.hex()
	}
	if !ok {
		b.f.problem(b.from, "%w", errFunction)
		return fn, false
	}
	fn.Name = string(l.rest())
	return fn, true
}

// next moves to the next valid line record or INLINE record.
func (b *body) next() bool {
	for b.offset < b.end {
		start := b.offset
		l := b.f.data[start:b.end]
		if i := bytes.IndexByte(l, '\n'); i >= 0 {
			l = l[:i+1]
		}
		b.offset += uint64(len(l))
		l = trimEnd(l)
		if len(l) == 0 {
			continue
		}
		if c := l[0]; c < 'A' || c > 'Z' || !isNamed(l) {
			if hexDigit[c] < 0 {
				continue // the index reported it
			}
			if b.readLine(l) {
				return true
			}
			b.f.problem(start, "%.80q, expected a line record: ADDRESS SIZE LINE FILE", l)
		} else if rest, ok := bytes.CutPrefix(l, []byte("INLINE ")); ok {
			if b.readInline(rest) {
				return true
			}
			b.f.problem(start, "%.80q, expected INLINE DEPTH LINE FILE ORIGIN and pairs of ADDRESS SIZE", l)
		}
	}
	return false
}

// isNamed reports whether a line begins with the name of a record.
func isNamed(l fields) bool {
	name := l.next()
	for i := range kinds {
		if kinds[i].name == string(name) {
			return true
		}
	}
	return false
}

func (b *body) readLine(l fields) (ok bool) {
	b.isInline, b.hasFile = false, true
	if b.from, b.to, ok = l.span(); !ok {
		return false
	}
	if b.place.line, ok = l.decimal(); !ok {
		return false
	}
	b.place.file, ok = l.decimal()
	return ok
}

// readInline reads both forms: the older one has no file of the call, and so an odd number
// of fields. The ranges are checked when they are read.
func (b *body) readInline(l fields) (ok bool) {
	b.isInline = true
	count := 0
	for ahead := l; len(ahead.next()) > 0; {
		count++
	}
	if count < 5 {
		return false
	}
	if b.depth, ok = l.decimal(); !ok {
		return false
	}
	if b.place.line, ok = l.decimal(); !ok {
		return false
	}
	b.place.file, b.hasFile = noFile, count%2 == 0
	if b.hasFile {
		if b.place.file, ok = l.fileNumber(); !ok {
			return false
		}
	}
	b.origin, ok = l.decimal()
	b.ranges = l
	for ahead := l; ok && len(bytes.TrimSpace(ahead)) > 0; {
		_, _, ok = ahead.span()
	}
	return ok
}

// spans are the ranges of an INLINE record.
func (b *body) spans() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for l := b.ranges; ; {
			from, to, ok := l.span()
			if !ok || !yield(from, to) {
				return
			}
		}
	}
}

// covers reports whether an INLINE record covers an address.
func (b *body) covers(address uint64) bool {
	for from, to := range b.spans() {
		if from <= address && address < to {
			return true
		}
	}
	return false
}

// call is an inlined call around an address.
type call struct {
	isMet   bool
	origin  int
	call    place
	hasFile bool
}

// lookup gathers a function's records of one address.
type lookup struct {
	address    uint64
	hasLine    bool
	file       int
	lineNumber int
	calls      []call // outermost first: at each depth the one that covers the address
}

// lookup searches the rest of the body for records of an address.
func (b *body) lookup(address uint64) lookup {
	l := lookup{address: address, file: noFile}
	for b.next() {
		if b.isInline {
			l.inline(b)
		} else {
			l.line(b)
		}
	}
	for i := range l.calls {
		if !l.calls[i].isMet {
			l.calls = l.calls[:i] // calls inlined into a call that is not there
			break
		}
	}
	return l
}

// line adds a line record; the first that covers the address counts.
func (l *lookup) line(b *body) {
	if !l.hasLine && b.from <= l.address && l.address < b.to {
		l.hasLine, l.file, l.lineNumber = true, b.place.file, b.place.line
	}
}

// inline adds an INLINE record; at each depth the first that covers the address counts.
// Outer calls may come before it or not: the dump_syms that is written in Rust sorts the
// records of a function by the address of their first range.
func (l *lookup) inline(b *body) {
	if b.depth >= maxInline || b.depth < len(l.calls) && l.calls[b.depth].isMet || !b.covers(l.address) {
		return
	}
	for len(l.calls) <= b.depth {
		l.calls = append(l.calls, call{})
	}
	l.calls[b.depth] = call{true, b.origin, b.place, b.hasFile}
}
