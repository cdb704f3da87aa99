// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
)

// ErrFormat is returned for a file without any record of a symbol file.
var ErrFormat = errors.New("no record of a Breakpad symbol file in it")

// maxRecords bounds the records of one kind: 400 MB of them. A browser has a million
// functions.
const maxRecords = 1 << 24

// chunk is how much of a mapped file is read before its pages are released.
const chunk = 32 << 20

// leastPart is the size of the smallest part that is read by a goroutine of its own.
const leastPart = 2 << 20

// indexer reads a part of the file once from front to back.
type indexer struct {
	*File         // of the part
	offset uint64 // of the line
	end    uint64 // of the line, behind its line feed
	limit  uint64 // of the part
	// function and cfi are set where the next lines belong to the last record of functions
	// or rules; tooLong where there are too many of them.
	function, cfi, tooLong bool
	known                  int  // lines that begin with the name of a record
	orphans                bool // the part begins with lines that belong to a record before it
}

// kinds are the records by their names, with their readers.
var kinds = []struct {
	name string
	read func(*indexer, fields) bool
}{
	{"FUNC", (*indexer).readFunction},
	{"INLINE", (*indexer).readInline},
	{"INLINE_ORIGIN", (*indexer).readOrigin},
	{"STACK", (*indexer).readStack},
	{"PUBLIC", (*indexer).readPublic},
	{"FILE", (*indexer).readFile},
	{"MODULE", (*indexer).readModule},
	{"INFO", (*indexer).readInfo},
}

func (f *File) index() error {
	if uint64(len(f.data)) >= maxFile {
		return fmt.Errorf("%s: %d bytes, expected less than %d", f.path, len(f.data), uint64(maxFile))
	}
	known, err := f.readParts(min(runtime.GOMAXPROCS(0), len(f.data)/leastPart))
	if err != nil {
		return err
	}
	if known == 0 {
		return fmt.Errorf("%s: %w, expected MODULE, FUNC, PUBLIC or another one at the beginning of a line", f.path, ErrFormat)
	}
	f.files, f.origins = byNumber(f.files), byNumber(f.origins)
	f.functions, f.rules = flatten(f.functions), flatten(f.rules)
	f.publics = uniquePublics(f.publics)
	for i := range f.win {
		f.win[i] = flatten(f.win[i])
	}
	return nil
}

// read reads the part.
func (x *indexer) read() {
	released := x.offset
	for ; x.offset < x.limit; x.offset = x.end {
		if x.run(); x.offset >= x.limit {
			break
		}
		x.end = x.lineEnd(x.offset)
		x.line(fields(x.data[x.offset:x.end]))
		if x.end-released >= chunk {
			x.mapping.ReleasePages(released, x.end)
			released = x.end
		}
	}
	x.mapping.ReleasePages(released, x.limit)
}

// lineEnd is the end of the line at an offset, behind its line feed.
func (x *indexer) lineEnd(offset uint64) uint64 {
	if i := bytes.IndexByte(x.data[offset:x.limit], '\n'); i >= 0 {
		return offset + uint64(i) + 1
	}
	return x.limit
}

// The beginnings of the frequent lines besides line records.
var (
	cfiChange = []byte("STACK CFI ")
	inline    = []byte("INLINE ")
)

// run skips and counts the lines that belong to the record above, almost all of a file.
func (x *indexer) run() {
	start := x.offset
	x.end = start
	for x.function && x.end < x.limit && x.end-start < chunk {
		l := x.data[x.end:x.limit]
		c := l[0]
		isInline := c == 'I' && bytes.HasPrefix(l, inline)
		if !isInline && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			break
		}
		x.offset, x.end = x.end, x.lineEnd(x.end)
		x.counts.Records++
		if isInline {
			x.known++
		}
	}
	if x.end > x.offset {
		x.reached()
		x.offset = x.end
	}
	for x.cfi && x.end < x.limit && x.end-start < chunk {
		l := x.data[x.end:x.limit]
		if l[0] != 'S' || len(l) <= len(cfiChange) || l[len(cfiChange)] < '0' || l[len(cfiChange)] > 'f' ||
			l[len(cfiChange)] == 'I' || !bytes.HasPrefix(l, cfiChange) {
			break
		}
		x.offset, x.end = x.end, x.lineEnd(x.end)
		x.counts.CFIRows++
		x.known++
	}
	if x.end > x.offset {
		x.changed()
		x.offset = x.end
	}
}

// reached extends the last function to x.end.
func (x *indexer) reached() {
	r := &x.functions[len(x.functions)-1]
	if r.reach(x.end) || x.tooLong {
		return
	}
	x.tooLong = true
	// It keeps the lines that end within the bound.
	most := r.offset() + maxLength
	end := r.offset() + uint64(bytes.LastIndexByte(x.data[r.offset():most], '\n')+1) //nolint:gosec // not negative
	r.reach(end)
	x.problem(end, "the records of the function go on for more than %d bytes: the others are not read", maxLength)
}

// changed extends the last STACK CFI INIT record to x.end.
func (x *indexer) changed() {
	if r := &x.rules[len(x.rules)-1]; !r.reach(x.end) {
		r.where |= maxLength // marks it as too long to be read whole
	}
}

// line reads one line, with its line feed.
func (x *indexer) line(l fields) {
	l = trimEnd(l)
	if len(l) == 0 {
		return
	}
	// Almost all lines are line records, which begin with a digit or a small letter: they
	// are only counted here.
	if c := l[0]; c >= 'A' && c <= 'Z' {
		ahead := l
		name := ahead.next()
		for i := range kinds {
			if kinds[i].name == string(name) {
				x.known++
				if !kinds[i].read(x, ahead) {
					x.damaged("%.80q, expected the fields of a record %s", l, name)
				}
				return
			}
		}
	}
	if hexDigit[l[0]] < 0 {
		x.damaged("%.80q, expected the name of a record or an address", l)
		return
	}
	x.belongs("a line record")
}

// trimEnd cuts off a line feed and carriage returns.
func trimEnd(l fields) fields {
	if n := len(l); n > 0 && l[n-1] == '\n' {
		l = l[:n-1]
	}
	for n := len(l); n > 0 && l[n-1] == '\r'; n-- {
		l = l[:n-1]
	}
	return l
}

func (x *indexer) damaged(format string, args ...any) {
	x.counts.Damaged++
	x.problem(x.offset, format, args...)
}

// belongs assigns the line to the function above it.
func (x *indexer) belongs(what string) {
	if !x.function {
		x.orphans = true
		x.damaged("%s without a FUNC record that it belongs to", what)
		return
	}
	x.counts.Records++
	x.reached()
}

// add keeps a record of a kind that has count records now.
func (x *indexer) add(list *[]record, start, end uint64) bool {
	if len(*list) == maxRecords {
		x.damaged("there are more than %d records of this kind: the others are not read", maxRecords)
		return false
	}
	r := record{start: start, end: end, where: x.offset << lengthBits}
	r.reach(x.end)
	*list = append(*list, r)
	return true
}

func (x *indexer) readFunction(l fields) bool {
	x.function, x.tooLong = false, false
	l.isMultiple()
	start, end, ok := l.span()
	if _, has := l.hex(); !ok || !has {
		return false // left out whole, so that it hides no function that can be read
	}
	x.counts.Functions++
	x.function = x.add(&x.functions, start, end)
	return true
}

func (x *indexer) readInline(fields) bool {
	x.belongs("an INLINE record")
	return true
}

// readPublic ends a function, as in Breakpad's own reader: a public symbol has no
// lines.
func (x *indexer) readPublic(l fields) bool {
	x.function = false
	l.isMultiple()
	address, ok := l.hex()
	if _, has := l.hex(); !ok || !has {
		return false
	}
	x.counts.Publics++
	// Files made from PDBs of Windows have many symbols at address 0 (ntdll's _CIlog,
	// _CIpow): there is no code.
	if address != 0 {
		x.add(&x.publics, address, address)
	}
	return true
}

func (x *indexer) readFile(l fields) bool {
	x.counts.Files++
	return x.number(&x.files, l)
}

func (x *indexer) readOrigin(l fields) bool {
	x.counts.Origins++
	return x.number(&x.origins, l)
}

func (x *indexer) number(list *[]numbered, l fields) bool {
	number, ok := l.decimal()
	text := l.rest()
	if !ok || len(text) == 0 || len(text) > math.MaxInt32 || len(*list) == maxRecords {
		return false
	}
	// text is a part of the data: the capacities of both end at one place.
	offset := uint64(cap(x.data) - cap(text)) //nolint:gosec // not negative
	*list = append(*list, numbered{uint32(number), uint32(len(text)), offset})
	return true
}

func (x *indexer) readModule(l fields) bool {
	m, ok := parseModule(l)
	if !ok {
		return false
	}
	if x.module == (Module{}) {
		x.module = m
	}
	return true
}

// maxInfos bounds the INFO records; files have one or two.
const maxInfos = 256

func (x *indexer) readInfo(l fields) bool {
	if text := l.rest(); len(text) > 0 && len(x.infos) < maxInfos {
		x.infos = append(x.infos, string(text))
		return true
	}
	return false
}

// readStack reads the address of a STACK CFI record, and all of a STACK WIN record.
func (x *indexer) readStack(l fields) bool {
	switch string(l.next()) {
	case "CFI":
		return x.readCFI(l)
	case "WIN":
		kind, w, ok := parseWin(l)
		if !ok {
			return false
		}
		switch kind {
		case winFrameData:
			x.counts.FrameData++
			return x.add(&x.win[0], w.Start, w.End)
		case winFPO:
			x.counts.FPO++
			return x.add(&x.win[1], w.Start, w.End)
		}
		x.counts.OtherWin++
		return true
	}
	return false
}

func (x *indexer) readCFI(l fields) bool {
	ahead := l
	if string(ahead.next()) != "INIT" {
		// An unreadable record still belongs to the one above: ignoring it there would be
		// wrong.
		if x.cfi {
			x.counts.CFIRows++
			x.changed()
		} else {
			x.orphans = true
		}
		return x.cfi
	}
	x.cfi = false
	start, end, ok := ahead.span()
	if !ok {
		return false
	}
	x.counts.CFI++
	x.counts.CFIRows++
	x.cfi = x.add(&x.rules, start, end)
	return true
}
