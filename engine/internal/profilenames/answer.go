// SPDX-License-Identifier: Apache-2.0

package profilenames

import (
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Function is a function as profiles have it.
type Function struct {
	Name   string // that people read
	System string // of the symbol; "": none, or the same
	File   string
	Start  int64 // its first line; 0: unknown
}

// Line is a position in a function, which Answer.Function numbered.
type Line struct {
	Function     uint64
	Line, Column int64 // 0: unknown
	HasFile      bool
}

// Answer collects the names of a profile.
type Answer struct {
	p     *Profile
	left  int    // bytes that may be added
	lines []byte // encoded fields
	spans []span // by frame, in lines

	functions, texts []byte // encoded elements that are added
	functionOf       map[functionKey]uint64
	textOf           map[string]uint64
	nextFunction     uint64
	nextText         uint64
	err              error
}

// functionKey is a function in the profile's texts.
type functionKey struct {
	name, system, file uint64
	start              int64
}

// Answer begins an answer, which may have so many bytes more than the profile.
func (p *Profile) Answer(limit int) *Answer {
	return &Answer{p: p, left: min(limit, maxSize-len(p.data)), spans: make([]span, len(p.Frames))}
}

// index numbers the functions and the texts that are there.
func (a *Answer) index() error {
	p := a.p
	a.textOf = make(map[string]uint64, len(p.tables[texts]))
	for i, s := range p.tables[texts] {
		if _, isTwice := a.textOf[string(p.bytes(s))]; !isTwice {
			a.textOf[string(p.bytes(s))] = uint64(i)
		}
	}
	a.nextText = uint64(len(p.tables[texts]))
	if _, ok := a.textOf[""]; !ok {
		a.addText("")
	}
	a.functionOf = make(map[functionKey]uint64, len(p.tables[functions]))
	for i, s := range p.tables[functions] {
		if err := a.indexFunction(i, s); err != nil {
			return err
		}
	}
	switch {
	case p.layout.shift > 0 && a.nextFunction == math.MaxUint64:
		return fmt.Errorf("%s: one has the id %d: expected that more functions can have one", p.layout.names[functions], a.nextFunction)
	case p.layout.shift > 0:
		a.nextFunction++
	default:
		if a.nextFunction = uint64(len(p.tables[functions])); a.nextFunction == 0 {
			a.addFunction(functionKey{}) // the first element means none
		}
	}
	return nil
}

// indexFunction numbers a function that is there.
func (a *Answer) indexFunction(i int, s span) error {
	var key functionKey
	p, number := a.p, uint64(i)
	err := p.fieldsOf(s, fmt.Sprintf("%s[%d]", p.layout.names[functions], i), func(f *field) error {
		if f.kind != protowire.VarintType {
			return nil
		}
		switch f.number - p.layout.shift {
		case 0:
			number = f.value
		case functionName:
			key.name = f.value
		case functionSystem:
			key.system = f.value
		case functionFile:
			key.file = f.value
		case functionStart:
			key.start = int64(f.value)
		}
		return nil
	})
	if _, isTwice := a.functionOf[key]; !isTwice {
		a.functionOf[key] = number
	}
	a.nextFunction = max(a.nextFunction, number)
	return err
}

// Function returns the number of a function, and adds it where it is not there. ok is false where the answer
// would be too large.
func (a *Answer) Function(f *Function) (number uint64, ok bool) {
	if a.functionOf == nil {
		if a.err = a.index(); a.err != nil {
			return 0, false
		}
	}
	const room = 3 * 2 * (1 + binaryMax)
	if a.left < len(f.Name)+len(f.System)+len(f.File)+2*room {
		return 0, false
	}
	key := functionKey{a.text(f.Name), a.text(f.System), a.text(f.File), f.Start}
	if n, ok := a.functionOf[key]; ok {
		return n, true
	}
	return a.addFunction(key), true
}

// binaryMax is the most bytes of a number.
const binaryMax = 10

// text returns the index of a text, and adds it where it is not there.
func (a *Answer) text(s string) uint64 {
	if n, ok := a.textOf[s]; ok {
		return n
	}
	return a.addText(s)
}

func (a *Answer) addText(s string) uint64 {
	before := len(a.texts)
	a.texts = protowire.AppendString(protowire.AppendTag(a.texts, a.p.layout.fields[texts], protowire.BytesType), s)
	a.left -= len(a.texts) - before
	n := a.nextText
	a.nextText++
	a.textOf[s] = n
	return n
}

func (a *Answer) addFunction(key functionKey) uint64 {
	shift, n := a.p.layout.shift, a.nextFunction
	var b []byte
	if shift > 0 {
		b = appendNumber(b, ownNumber, n)
	}
	b = appendNumber(b, shift+functionName, key.name)
	b = appendNumber(b, shift+functionSystem, key.system)
	b = appendNumber(b, shift+functionFile, key.file)
	b = appendNumber(b, shift+functionStart, uint64(key.start))
	before := len(a.functions)
	a.functions = protowire.AppendBytes(protowire.AppendTag(a.functions, a.p.layout.fields[functions], protowire.BytesType), b)
	a.left -= len(a.functions) - before
	a.nextFunction++
	a.functionOf[key] = n
	return n
}

// appendNumber appends a field, unless it is zero.
func appendNumber(b []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

// SetLines gives lines to a frame, the innermost first. ok is false where the answer would be too large.
func (a *Answer) SetLines(frame int, lines []Line) (ok bool) {
	start := len(a.lines)
	number := a.p.layout.shift + locationLines
	for i := range lines {
		var fields [3 * (1 + binaryMax)]byte
		b := appendNumber(fields[:0], lineFunction, lines[i].Function)
		b = appendNumber(b, lineLine, uint64(lines[i].Line))
		b = appendNumber(b, lineColumn, uint64(lines[i].Column))
		a.lines = protowire.AppendBytes(protowire.AppendTag(a.lines, number, protowire.BytesType), b)
		if len(a.lines)-start > a.left {
			a.lines = a.lines[:start]
			return false
		}
	}
	a.left -= len(a.lines) - start + binaryMax
	a.spans[frame] = span{uint32(start), uint32(len(a.lines))}
	if m := a.p.Frames[frame].Mapping; m >= 0 {
		a.p.Mappings[m].count(lines)
	}
	return true
}

// count counts what lines tell.
func (m *Mapping) count(lines []Line) {
	m.functions++
	for i := range lines {
		if !lines[i].HasFile {
			return
		}
	}
	m.files++
	for i := range lines {
		if lines[i].Line == 0 {
			return
		}
	}
	m.lines++
}

// WriteTo writes the profile with its names. Without any it is the bytes that were read.
func (a *Answer) WriteTo(w io.Writer) (int64, error) {
	if a.err != nil {
		return 0, a.err
	}
	if len(a.lines) == 0 {
		n, err := w.Write(a.p.data)
		return int64(n), err
	}
	body := a.appendBody(nil)
	if a.p.format == Pprof {
		n, err := w.Write(body)
		return int64(n), err
	}
	return a.writeMessage(w, body)
}

// writeMessage writes a message of OpenTelemetry with another dictionary in the place of the first one.
func (a *Answer) writeMessage(w io.Writer, body []byte) (written int64, err error) {
	write := func(b []byte) {
		if err == nil && len(b) > 0 {
			var n int
			n, err = w.Write(b)
			written += int64(n)
		}
	}
	at, isWritten := uint32(0), false
	failed := a.p.fieldsOf(span{0, uint32(len(a.p.data))}, "", func(f *field) error {
		if f.number == dictionary && f.kind == protowire.BytesType {
			write(a.p.data[at:f.whole.start])
			at = f.whole.end
			if !isWritten {
				write(protowire.AppendVarint(protowire.AppendTag(nil, dictionary, protowire.BytesType), uint64(len(body))))
				write(body)
				isWritten = true
			}
		}
		return nil
	})
	if failed != nil {
		return written, failed
	}
	write(a.p.data[at:])
	return written, err
}

// appendBody appends the tables with the lines of locations, and with the functions and texts that were added.
func (a *Answer) appendBody(dst []byte) []byte {
	p := a.p
	size := len(a.lines) + len(a.functions) + len(a.texts) + binaryMax*len(p.Frames)
	for _, part := range p.body {
		size += int(part.end - part.start)
	}
	dst = make([]byte, 0, size)
	changed := a.mappingFlags()
	var next [tables]uint32 // the index of the element that comes
	frame := 0
	for _, part := range p.body {
		at := part.start
		// The parts were read before: there is no error.
		_ = p.fieldsOf(part, "", func(f *field) error {
			t, ok := p.tableOf(f.number)
			if !ok {
				return nil
			}
			index := next[t]
			next[t]++
			switch {
			case t == locations && frame < len(p.Frames) && p.Frames[frame].location == index:
				if lines := a.spans[frame]; lines != (span{}) {
					dst = append(dst, p.data[at:f.whole.start]...)
					dst = a.appendLocation(dst, f, p.Frames[frame].hasLines, a.lines[lines.start:lines.end])
					at = f.whole.end
				}
				frame++
			case t == mappings && changed[index] != nil:
				dst = append(dst, p.data[at:f.whole.start]...)
				dst = appendElement(dst, f.number, p.bytes(f.text), changed[index])
				at = f.whole.end
			}
			return nil
		})
		dst = append(dst, p.data[at:part.end]...)
	}
	return append(append(dst, a.functions...), a.texts...)
}

// appendElement appends an element in two parts.
func appendElement(dst []byte, number protowire.Number, first, second []byte) []byte {
	dst = protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.BytesType), uint64(len(first)+len(second)))
	return append(append(dst, first...), second...)
}

// appendLocation appends a location with lines. Lines that it had name nothing.
func (a *Answer) appendLocation(dst []byte, f *field, hasLines bool, lines []byte) []byte {
	own := a.p.bytes(f.text)
	if hasLines {
		var kept []byte
		_ = a.p.fieldsOf(f.text, "", func(part *field) error {
			if part.number != a.p.layout.shift+locationLines {
				kept = append(kept, a.p.bytes(part.whole)...)
			}
			return nil
		})
		own = kept
	}
	return appendElement(dst, f.number, own, lines)
}

// mappingFlags are the fields of pprof's mappings about the names of all their locations, by index.
func (a *Answer) mappingFlags() map[uint32][]byte {
	if a.p.format != Pprof {
		return nil
	}
	changed := map[uint32][]byte{}
	for i := range a.p.Mappings {
		m := &a.p.Mappings[i]
		if m.functions == 0 || m.functions != m.frames {
			continue
		}
		fields := appendNumber(nil, hasFunctions, 1)
		if !m.wasNamed && m.files == m.frames {
			fields = appendNumber(fields, hasFiles, 1)
		}
		if !m.wasNamed && m.lines == m.frames {
			fields = appendNumber(appendNumber(fields, hasLines, 1), hasInlines, 1)
		}
		changed[m.index] = fields
	}
	return changed
}
