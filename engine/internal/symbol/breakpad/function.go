// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// Function is a FUNC record ("FUNC records").
type Function struct {
	Name       string // as in the file, usually the demangled name
	Start, End uint64
	// ParameterSize is the number of bytes of arguments that the function pops.
	ParameterSize uint64
	// Multiple is set where several symbols have this code, one of which is named.
	Multiple bool
}

// Line is the line of a file for the code from Start to End ("Line records"). File is ""
// and Line 0 where they are unknown.
type Line struct {
	Start, End uint64
	File       string
	Line       int
}

// Inline is a call that was inlined ("INLINE records").
type Inline struct {
	// Depth is 0 for a call inlined into the function itself, 1 for a call inlined into the
	// call of depth 0 around it, and so on.
	Depth    int
	Name     string // of the callee; "" without an INLINE_ORIGIN
	CallFile string // file of the call; "": unknown
	CallLine int    // line of the call; 0: unknown
	Ranges   []Range
}

// Range is code from Start up to, but not including, End.
type Range struct{ Start, End uint64 }

// maxInline bounds the inlined calls around an address.
const maxInline = 512

// Frames appends the function at an address of the module and the calls inlined into it,
// innermost first. Without a function it appends a public symbol, which extends to the next
// symbol or function, but not past the end of a function or the start of call frame
// information. The error is returned for a truncated file.
func (f *File) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	before := len(dst)
	err := f.guard(func() error {
		dst = f.frames(dst, address)
		return nil
	})
	if err != nil {
		return dst[:before], err
	}
	return dst, nil
}

func (f *File) frames(dst []trace.Symbol, address uint64) []trace.Symbol {
	r := find(f.functions, address)
	if r == nil {
		return f.publicFrames(dst, address)
	}
	b := f.body(r)
	fn, ok := b.function()
	if !ok {
		return dst
	}
	l := b.lookup(address)
	pos := place{l.file, l.lineNumber}
	for i := len(l.calls) - 1; i >= 0; i-- {
		frame := f.frame(l.calls[i].origin, pos)
		dst = append(dst, frame)
		pos = f.callOf(&l, i, f.body(r), fn.Start)
	}
	frame := trace.Symbol{Start: fn.Start, HasStart: true, File: f.file(pos.file), Line: pos.line}
	frame.Function, frame.LinkageName = names([]byte(fn.Name))
	if fn.Multiple {
		frame.Equals = trace.SeveralEqual
	}
	return append(dst, frame)
}

// frame is the frame of an inlined function at a position.
func (f *File) frame(origin int, position place) trace.Symbol {
	frame := trace.Symbol{Inlined: true, File: f.file(position.file), Line: position.line}
	name, _ := f.origin(origin)
	frame.Function, frame.LinkageName = names(name)
	return frame
}

// callOf is the place of the call with an index. The older form of INLINE has no file: it
// is the file of the function around the call. INLINE_ORIGIN has it for functions that are
// inlined themselves. For the function of b it is the file of its first line, unless that
// is a part of a call too.
func (f *File) callOf(l *lookup, i int, b body, start uint64) place {
	caller := l.calls[i].call
	if l.calls[i].hasFile {
		return caller
	}
	if i > 0 {
		_, caller.file = f.origin(l.calls[i-1].origin)
	} else {
		caller.file = b.ownFile(start)
	}
	return caller
}

// ownFile is the file of a function that begins at an address, by its first line.
func (b body) ownFile(start uint64) int {
	if first := b.lookup(start); len(first.calls) == 0 {
		return first.file
	}
	return noFile
}

// Function returns the FUNC record that Frames finds for an address.
func (f *File) Function(address uint64) (fn Function, ok bool) {
	_ = f.guard(func() error {
		if r := find(f.functions, address); r != nil {
			b := f.body(r)
			fn, ok = b.function()
		}
		return nil
	})
	return fn, ok
}

// Symbol is a PUBLIC record ("PUBLIC records").
type Symbol struct {
	Name          string
	Address       uint64
	ParameterSize uint64
	Multiple      bool
}

// uniquePublics sorts records; of several at one address it keeps the first of the file.
func uniquePublics(list []record) []record {
	for i := range list {
		list[i].end = list[i].start + 1
	}
	return flatten(list)
}

// windows is the operating system of a MODULE record whose rows come from unwind codes.
const windows = "windows"

func (f *File) publicFrames(dst []trace.Symbol, address uint64) []trace.Symbol {
	p := before(f.publics, address)
	if p == nil {
		return dst
	}
	if r := before(f.functions, address); r != nil && r.end > p.start {
		return dst
	}
	// Code whose call frame information begins after the symbol is another function, which
	// has no name here. Functions of Windows have it in several parts.
	if start, ok := f.ruleStart(address); ok && start > p.start && f.module.OS != windows {
		return dst
	}
	s, ok := f.public(p)
	if !ok {
		return dst
	}
	frame := trace.Symbol{Start: s.Address, HasStart: true}
	frame.Function, frame.LinkageName = names([]byte(s.Name))
	return append(dst, frame)
}

// ruleStart is the start of the STACK CFI INIT record that covers an address.
func (f *File) ruleStart(address uint64) (start uint64, ok bool) {
	r := find(f.rules, address)
	if r == nil {
		return 0, false
	}
	l := f.lineAt(r.offset())
	for range 3 { // STACK CFI INIT
		l.next()
	}
	start, _, ok = l.span()
	return start, ok
}

func (f *File) public(r *record) (s Symbol, ok bool) {
	l := f.lineAt(r.offset())
	l.next()
	s.Multiple = l.isMultiple()
	s.Address, _ = l.hex()
	if s.ParameterSize, ok = l.hex(); !ok {
		f.problem(r.offset(), "PUBLIC record: expected the size of the parameters in hexadecimal digits")
		return s, false
	}
	s.Name = string(l.rest())
	return s, true
}

// Publics calls yield with every PUBLIC record, by address: the first of the file of
// several at one address. Records at 0 are left out.
func (f *File) Publics(yield func(Symbol) bool) {
	_ = f.guard(func() error {
		for i := range f.publics {
			if s, ok := f.public(&f.publics[i]); ok && !yield(s) {
				break
			}
		}
		return nil
	})
}

// lineAt returns the line that begins at an offset.
func (f *File) lineAt(offset uint64) fields {
	s := f.data[offset:]
	if i := bytes.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return trimEnd(s)
}

// file is the name of a file; "" where the number is unknown.
func (f *File) file(number int) string {
	s, _ := f.text(f.files, number)
	return string(s)
}

// origin returns the name of an inlined function; file is the file in the older form
// "INLINE_ORIGIN number file name", noFile in the newer one, where a name never begins with
// a number.
func (f *File) origin(number int) (name []byte, file int) {
	s, ok := f.text(f.origins, number)
	if !ok {
		return nil, noFile
	}
	l := fields(s)
	if n, ok := l.fileNumber(); ok {
		if name := l.rest(); len(name) > 0 {
			return name, n
		}
	}
	return s, noFile
}

// names returns the readable form of a name of the file and the linkage name, "" where it
// is the same. Most producers demangle; some leave names of Rust and Swift, or all of them,
// mangled.
func names(raw []byte) (function, linkage string) {
	linkage = string(raw)
	if function = symbol.Demangle(linkage); function == linkage {
		return function, ""
	}
	return function, linkage
}

// Functions calls yield with every FUNC record whose code is not hidden by others, by
// address, and its body. A function that others split comes once.
func (f *File) Functions(yield func(Function, *Body) bool) {
	_ = f.guard(func() error {
		parts := map[uint64]bool{} // the split functions, by their offsets
		for i := range f.functions {
			r := &f.functions[i]
			b := f.body(r)
			fn, ok := b.function()
			if !ok || parts[r.where] {
				continue
			}
			if r.start != fn.Start || r.end != fn.End {
				parts[r.where] = true
			}
			if !yield(fn, &Body{b, fn.Start}) {
				break
			}
		}
		return nil
	})
}

// Body is the records that belong to a function. It is valid while Functions calls yield
// with it.
type Body struct {
	start   body
	address uint64 // start of the function
}

// Lines are the line records, in the order of the file.
func (b *Body) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for x := b.start; x.next(); {
			if !x.isInline && !yield(Line{x.from, x.to, x.f.file(x.place.file), x.place.line}) {
				return
			}
		}
	}
}

// Inlines are the INLINE records, in the order of the file.
func (b *Body) Inlines() iter.Seq[Inline] {
	return func(yield func(Inline) bool) {
		// The files of the function and of the calls around the next one.
		above, isOld := []int{noFile}, false
		for x := b.start; x.next(); {
			if !x.isInline {
				continue
			}
			name, file := x.f.origin(x.origin)
			inlined := Inline{Depth: x.depth, Name: string(name), CallLine: x.place.line}
			if !x.hasFile && !isOld {
				above[0], isOld = b.start.ownFile(b.address), true
			}
			if !x.hasFile && x.depth < len(above) {
				x.place.file = above[x.depth]
			}
			inlined.CallFile = x.f.file(x.place.file)
			if x.depth < len(above) {
				above = append(above[:x.depth+1], file)
			}
			for from, to := range x.spans() {
				inlined.Ranges = append(inlined.Ranges, Range{from, to})
			}
			if !yield(inlined) {
				return
			}
		}
	}
}

var errFunction = fmt.Errorf("FUNC record: expected the size of the parameters in hexadecimal digits behind address and size")
