// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// Read reads a part that Write wrote. An error for data that is none wraps ErrPart, and names the offset.
func Read(r io.Reader) (*Part, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	n := len(partMagic)
	switch {
	case !IsPart(data) || len(data) < n+checksumSize:
		return nil, fmt.Errorf("%w: it begins with %q, expected %q", ErrPart, data[:min(len(data), n)], partMagic[:n-1])
	case data[n-1] != partMagic[n-1]:
		return nil, fmt.Errorf("%w: it is of version %d, expected %d: write it with this version of unwindd", ErrPart, data[n-1], partMagic[n-1])
	}
	end := len(data) - checksumSize
	if have, want := crc32.Checksum(data[:end], castagnoli), binary.LittleEndian.Uint32(data[end:]); have != want {
		return nil, fmt.Errorf("%w: its checksum is %#x, expected %#x: it was cut off or changed; write it again", ErrPart, have, want)
	}
	p := &partReader{data: data[:end], offset: n, part: New(Options{})}
	p.read()
	return p.part, p.failed
}

// partReader reads a part, whose every byte may be wrong. After the first error, which is kept, it yields
// nothing.
type partReader struct {
	data   []byte
	offset int
	failed error
	part   *Part
	ids    []threadID
}

// fail keeps the first error.
func (p *partReader) fail(format string, args ...any) {
	if p.failed == nil {
		p.failed = fmt.Errorf("%w: at %#x: %s", ErrPart, p.offset, fmt.Sprintf(format, args...))
	}
	p.offset = len(p.data)
}

// number reads a number of at most most.
func (p *partReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(p.data[p.offset:])
	switch {
	case size <= 0:
		p.fail("it ends in a number, or the number has more than 64 bits")
		return 0
	case n > most:
		p.fail("a number %d, expected at most %d", n, most)
		return 0
	}
	p.offset += size
	return n
}

func (p *partReader) signed() int64 {
	n, size := binary.Varint(p.data[p.offset:])
	if size <= 0 {
		p.fail("it ends in a number, or the number has more than 64 bits")
		return 0
	}
	p.offset += size
	return n
}

// count reads a number of elements, each of which has at least a number of bytes.
func (p *partReader) count(least int) int {
	n := p.number(math.MaxUint64)
	if left := uint64((len(p.data) - p.offset) / least); n > left { //nolint:gosec // not negative
		p.fail("a list of %d, expected at most %d in the bytes that follow", n, left)
		return 0
	}
	return int(n) //nolint:gosec // bounded
}

// index reads the number of an entry of a list, which has so many.
func (p *partReader) index(entries int) uint32 {
	if entries == 0 {
		p.fail("a number of an entry of a list that is empty")
		return 0
	}
	return uint32(p.number(uint64(entries - 1))) //nolint:gosec // bounded
}

// textNumber reads the number of a text.
func (p *partReader) textNumber() uint32 { return p.index(len(p.part.texts.list)) }

// isNext fails where an entry that was read has another number than the next one: then it was there before.
func (p *partReader) isNext(have uint32, want int, kind string) {
	if p.failed == nil && have != uint32(want) { //nolint:gosec // of a list in memory
		p.fail("%s %d is the same as %d", kind, want, have)
	}
}

func (p *partReader) text() string {
	n := p.count(1)
	p.offset += n
	return string(p.data[p.offset-n : p.offset])
}

func (p *partReader) list() []uint32 {
	list := make([]uint32, 0, 8)
	for n := p.count(1); n > 0 && p.failed == nil; n-- {
		list = append(list, p.textNumber())
	}
	return p.part.keepNumbers(list)
}

func (p *partReader) time() time.Time {
	nanoseconds := p.number(1e9)
	if nanoseconds == 0 || p.failed != nil {
		return time.Time{}
	}
	seconds := p.signed()
	t := plainTime(time.Unix(seconds, int64(nanoseconds)-1)) //nolint:gosec // bounded
	if t.IsZero() {
		p.fail("a time of %d seconds, expected one of the years 1 to 9999", seconds)
	}
	return t
}

// read reads all behind the magic.
func (p *partReader) read() {
	options := p.number(allOptions)
	p.part.options = Options{ByThread: options&byThreadOption != 0, CrashedOnly: options&crashedOption != 0}
	p.readTexts()
	p.readFrames()
	p.readNodes()
	p.readShapes()
	p.readModules()
	for n := p.count(12); n > 0 && p.failed == nil; n-- {
		p.readRecord()
	}
	for n := p.count(2); n > 0 && p.failed == nil; n-- {
		key := p.text()
		p.part.notes[note{key, p.text()}] = struct{}{}
	}
	if p.failed == nil && p.offset < len(p.data) {
		p.fail("something follows its end")
	}
}

func (p *partReader) readTexts() {
	n := p.count(1)
	for i := 0; i < n && p.failed == nil; i++ {
		p.isNext(p.part.texts.number(p.text()), i, "text")
	}
	if p.failed == nil && n == 0 {
		p.fail("no texts, expected the empty one")
	}
}

func (p *partReader) readFrames() {
	n := p.count(9)
	for i := 0; i < n && p.failed == nil; i++ {
		var f trace.ComparedFrame
		for _, s := range []*string{&f.Function, &f.Short, &f.Module, &f.Runtime, &f.File} {
			*s = p.part.texts.list[p.textNumber()]
		}
		f.Offset = p.number(math.MaxUint64)
		f.Line, f.Column = int(p.signed()), int(p.signed())
		flags := p.number(allFlags)
		f.IsInlined, f.IsWave, f.IsGuess = flags&inlinedFlag != 0, flags&waveFlag != 0, flags&guessFlag != 0
		p.isNext(p.part.frameNumber(&f), i, "frame")
	}
}

func (p *partReader) readNodes() {
	n := p.count(2)
	for i := 1; i <= n && p.failed == nil; i++ {
		back := int(p.number(uint64(i))) //nolint:gosec // bounded
		frame := p.index(len(p.part.frames))
		if back == 0 {
			p.fail("node %d is its own parent", i)
		}
		if p.failed == nil {
			p.isNext(p.part.child(uint32(i-back), frame), i, "node") //nolint:gosec // not negative
		}
	}
}

func (p *partReader) readShapes() {
	n := p.count(1)
	for i := 0; i < n && p.failed == nil; i++ {
		var s shape
		threads := uint64(0)
		for runs := p.count(4); runs > 0 && p.failed == nil; runs-- {
			one := run{runKey: runKey{role: p.textNumber(), ends: p.textNumber(), node: p.index(len(p.part.parent))}}
			count := p.number(math.MaxUint32)
			one.count, one.crashed = uint32(count>>1), count&1 == 1 //nolint:gosec // bounded
			threads += uint64(one.count)
			if one.count == 0 || len(s) > 0 && s[len(s)-1].runKey.compare(&one.runKey) >= 0 {
				p.fail("a run of shape %d has no thread, or is not in the order of runs", i)
			}
			s = append(s, one)
		}
		if threads > math.MaxInt32 {
			p.fail("shape %d has %d threads, expected at most %d", i, threads, math.MaxInt32)
		}
		if p.failed == nil {
			p.isNext(p.part.shapeNumber(s), i, "shape")
		}
	}
}

func (p *partReader) readModules() {
	n := p.count(1)
	for i := 0; i < n && p.failed == nil; i++ {
		var set []module
		for k := p.count(2); k > 0 && p.failed == nil; k-- {
			set = append(set, module{p.textNumber(), p.textNumber()})
			if m := set[len(set)-1]; m.name == 0 || m.build == 0 {
				p.fail("a module of set %d has no name or no build ID", i)
			}
		}
		size := len(set)
		if p.failed == nil {
			p.isNext(p.part.moduleSet(set), i, "set of modules")
		}
		if p.failed == nil && len(p.part.moduleSets[i]) != size {
			p.fail("a module of set %d is in it twice", i)
		}
	}
}

func (p *partReader) readRecord() {
	before := ""
	if n := len(p.part.records); n > 0 {
		before = p.part.records[n-1].path
	}
	shared := p.number(uint64(min(len(before), maxSharedPath)))
	r := record{path: before[:shared] + p.text()}
	r.host, r.unread, r.pid, r.started, r.taken = p.textNumber(), p.textNumber(), p.signed(), p.time(), p.time()
	r.labels, r.facts, r.problems = p.list(), p.list(), p.list()
	p.checkLabels(r.labels)
	r.shape, r.modules = p.index(len(p.part.shapes)), p.index(len(p.part.moduleSets))
	if r.unread != 0 && (r.shape != 0 || r.modules != 0) {
		p.fail("a target that was not read has threads or modules")
	}
	if p.failed == nil {
		p.readIDs(&r)
	}
	if p.failed == nil {
		p.part.records = append(p.part.records, r)
	}
}

// checkLabels checks that labels have names, in order.
func (p *partReader) checkLabels(list []uint32) {
	if len(list)%2 != 0 || len(list) > 2*maxLabels {
		p.fail("%d names and values of labels, expected an even number of at most %d", len(list), 2*maxLabels)
		return
	}
	for i := 2; i < len(list); i += 2 {
		if p.part.texts.list[list[i-2]] >= p.part.texts.list[list[i]] {
			p.fail("labels that are not in the order of their names")
			return
		}
	}
}

// readIDs reads the IDs of a target's threads.
func (p *partReader) readIDs(r *record) {
	s := p.part.shapes[r.shape]
	count := 0
	for i := range s {
		count += int(s[i].count)
	}
	ids, rest, ok := readIDs(p.ids[:0], p.data[p.offset:], count)
	p.ids = ids
	if !ok {
		p.fail("an ID of a thread that is damaged or cut off")
		return
	}
	r.ids = kept(&p.part.bytes, p.data[p.offset:len(p.data)-len(rest)])
	p.offset = len(p.data) - len(rest)
	for i := range s {
		if run := ids[:s[i].count]; !slices.IsSortedFunc(run, func(a, b threadID) int { return a.compare(&b) }) {
			p.fail("IDs of threads that are not in order")
			return
		}
		ids = ids[s[i].count:]
	}
}
