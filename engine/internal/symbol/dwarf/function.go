// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// maxDepth bounds the nesting of the entries of one unit.
const maxDepth = 1024

// rangeSlack bounds the ranges in the indexes of a file, besides one for every 4 bytes of
// entries: a sound file has one for every 100.
const rangeSlack = 1 << 16

// function is a DW_TAG_subprogram that has code.
type function struct {
	entry    uint64 // start of its code, if hasEntry
	offset   uint32 // of the entry, from the unit's header
	hasEntry bool
	inlines  atomic.Pointer[inlines] // nil until needed
}

// removed is a DW_TAG_subprogram whose code a linker left out, or replaced by the code of
// another function.
type removed struct {
	offset uint32 // of the entry, from the unit's header
	size   uint32 // of its code
}

// functions are the functions of a unit, by address.
type functions struct {
	list       []function
	where      ranges.Flat
	equal      []ranges.Range // of functions that share their code with others, by address and entry
	removed    []removed      // by entry
	hasSkipped bool           // some entries were skipped
}

// inlined is a DW_TAG_inlined_subroutine.
type inlined struct {
	offset uint32 // of the entry, from the unit's header
	parent int32  // the call that it is inlined into; -1: the function itself
}

// inlines are the inlined calls of a function. Their addresses are searched one by one at first:
// most functions are asked about a few times.
type inlines struct {
	list   []inlined
	ranges []ranges.Range // by call
	scans  atomic.Int32   // how often they were searched
	where  *ranges.Flat   // in the place of ranges; nil: not yet
}

// maxScans is how often the ranges of inlined calls are searched before they are put in order, and
// maxScanned how many are never put in order.
const (
	maxScans   = 16
	maxScanned = 8
)

// countRanges counts ranges in the indexes; it is false where they are too many.
func (f *file) countRanges(n int) bool {
	limit := int64(len(f.info))/4 + rangeSlack
	return f.kept.Add(int64(n)) <= limit
}

// walk visits the entries of a unit.
type walk struct {
	*body
	info    []byte
	off     uint64       // of the next entry
	abbrevs *abbrevTable // nil where err is set
	err     error
}

func (b *body) walk(off uint64) walk {
	abbrevs, err := b.abbrevs()
	return walk{body: b, info: b.bytes(), off: off, abbrevs: abbrevs, err: err}
}

// next reads the abbreviation of the next entry, and leaves off at its values. It returns
// nil for a null entry, and at the end of the unit.
func (w *walk) next() (a *abbrev, entry uint64, err error) {
	entry = w.off
	code := uint64(w.info[entry])
	if code < leb128.More {
		w.off++
	} else if code, w.off = ulebAt(w.info, entry); w.off == 0 {
		return nil, entry, w.wrong(entry, "the abbreviation of an entry does not end in the unit")
	}
	if code == 0 {
		return nil, entry, nil
	}
	if a = w.abbrevs.find(code); a == nil {
		if w.err != nil {
			return nil, entry, w.err
		}
		return nil, entry, w.wrong(entry, "abbreviation %d is not declared", code)
	}
	return a, entry, nil
}

// pass skips the values of an entry.
func (w *walk) pass(a *abbrev, entry uint64) error {
	off := w.format.skipValues(w.info, w.off, a.skips)
	if off == 0 {
		return w.wrong(entry, "the values of the entry do not end in the unit")
	}
	w.off = off
	return nil
}

// sibling returns the offset of the entry after an entry's children, by DW_AT_sibling; 0
// where it is unknown. Values are at w.off.
func (w *walk) sibling(a *abbrev) uint64 {
	if a.sibling < 0 {
		return 0
	}
	offset := w.off + uint64(a.sibling)
	if offset+4 > uint64(len(w.info)) {
		return 0
	}
	sibling := w.offset + uintAt(w.info[offset:offset+4], w.format.isBigEndian)
	if sibling <= offset || sibling > uint64(len(w.info)) {
		return 0
	}
	return sibling
}

// canSkip reports whether the children of an entry contain no function, as far as compilers
// write them.
func canSkip(a *abbrev) bool {
	switch a.tag {
	case dw.TagEnumerationType, dw.TagArrayType, dw.TagSubroutineType, dw.TagStructureType, dw.TagClassType, dw.TagUnionType, dw.TagSubprogram, dw.TagCallSite, dw.TagGNUCallSite:
		return true
	}
	return false
}

// findFunctions finds the functions of a unit that have code. Most functions are siblings,
// in units and namespaces; few are inside functions: unless everything is set, the entries
// inside functions and types are skipped where DW_AT_sibling gives the next entry.
func (b *body) findFunctions(everything bool) (*functions, error) {
	x := &functions{}
	if b.first >= b.end || b.isType() {
		return x, nil
	}
	w := b.walk(b.first)
	budget := int64(b.end-b.offset) + 1<<20
	tmp := scratchPool.Get().(*scratch)
	defer scratchPool.Put(tmp)
	tmp.ranges = tmp.ranges[:0]
	size := uint64(len(w.info))
	depth := 0
	for w.off < size {
		a, entry, err := w.next()
		if err != nil {
			return nil, err
		}
		if a == nil {
			if depth--; depth <= 0 {
				break
			}
			continue
		}
		var next uint64
		if a.hasChildren && !everything && canSkip(a) {
			next = w.sibling(a)
		}
		if a.tag == dw.TagSubprogram && a.hasCode {
			e, behind := w.extent(a)
			if behind == 0 {
				return nil, b.wrong(entry, "the values of the entry do not end in the unit")
			}
			w.off = behind
			if err := b.addFunction(x, entry, &e, tmp, &budget); err != nil {
				return nil, err
			}
		} else if next == 0 {
			if err := w.pass(a, entry); err != nil {
				return nil, err
			}
		}
		switch {
		case next != 0:
			w.off, x.hasSkipped = next, true
		case a.hasChildren:
			if depth++; depth > maxDepth {
				return nil, b.wrong(entry, "entry nested deeper than %d", maxDepth)
			}
		}
		if depth == 0 { // the unit's own entry, without children
			break
		}
	}
	if !b.file.countRanges(len(tmp.ranges)) {
		return nil, b.wrong(b.offset, "the ranges of its functions are more than its size makes believable")
	}
	x.where = ranges.Flatten(tmp.ranges)
	x.findEqual(tmp.ranges)
	b.file.addKept(sizeOf[function](cap(x.list)) + flatSize(&x.where) + sizeOf[ranges.Range](cap(x.equal)) + sizeOf[removed](cap(x.removed)))
	return x, nil
}

// addFunction adds the function of an entry to x, and its ranges to tmp, unless it has no
// code.
func (b *body) addFunction(x *functions, entry uint64, e *extent, tmp *scratch, budget *int64) (err error) {
	if tmp.list, err = b.spans(tmp.list[:0], e, budget); err != nil {
		return err
	}
	if len(tmp.list) == 0 {
		if n := e.high.n; e.hasLow && e.hasHigh && !e.high.isAddress() && n > 0 && n <= math.MaxUint32 {
			x.removed = append(x.removed, removed{uint32(entry - b.offset), uint32(n)})
		}
		return nil
	}
	tmp.ranges = appendRanges(tmp.ranges, tmp.list, int32(len(x.list)))
	pc, hasEntry := b.entryPC(e, tmp.list)
	x.list = append(x.list, function{offset: uint32(entry - b.offset), entry: pc, hasEntry: hasEntry})
	return nil
}

// appendRanges appends the ranges of a numbered item.
func appendRanges(to []ranges.Range, list []span, number int32) []ranges.Range {
	for _, s := range list {
		to = append(to, ranges.Range{Start: s.start, End: s.end, Index: number})
	}
	return to
}

// extent reads the values of the entry at w.off, and returns those that give the range of
// its code. behind is the offset behind the values; 0 where they do not end in the unit.
func (w *walk) extent(a *abbrev) (e extent, behind uint64) {
	c := w.cursor(w.off)
	w.readExtent(&c, a, &e)
	if c.failed {
		return e, 0
	}
	return e, c.off
}

// readExtent reads the values of an entry, and keeps those that give the range of its code.
func (b *body) readExtent(c *cursor, a *abbrev, e *extent) {
	for i := range a.specs {
		s := &a.specs[i]
		switch s.attr {
		case dw.AttrLowPC:
			e.low, e.hasLow = b.format.value(c, s), true
		case dw.AttrHighPC:
			e.high, e.hasHigh = b.format.value(c, s), true
		case dw.AttrRanges:
			e.ranges, e.hasRanges = b.format.value(c, s), true
		case dw.AttrEntryPC:
			e.entry, e.hasEntry = b.format.value(c, s), true
		default:
			if s.kind == skipFixed {
				c.skip(uint64(s.size))
			} else {
				b.format.value(c, s)
			}
		}
	}
}

// callsAt returns the inlined calls of a function, and the number of the innermost one at an
// address; -1: none is there.
func (b *body) callsAt(f *function, address uint64) (x *inlines, innermost int, err error) {
	if x = f.inlines.Load(); x == nil {
		if x, _, err = b.findInlines(f); err != nil {
			return nil, -1, err
		}
		b.file.addKept(sizeOf[inlined](cap(x.list)) + sizeOf[ranges.Range](cap(x.ranges)))
		// Two that read at the same time find the same.
		f.inlines.Store(x)
	}
	if x.where != nil {
		return x, x.where.At(address), nil
	}
	if x.scans.Add(1) == maxScans && len(x.ranges) > maxScanned {
		where := x.flat()
		b.file.addKept(flatSize(&where) - sizeOf[ranges.Range](cap(x.ranges)))
		f.inlines.Store(&inlines{list: x.list, where: &where})
	}
	for i := len(x.ranges) - 1; i >= 0; i-- {
		if r := &x.ranges[i]; r.Start <= address && address < r.End {
			return x, int(r.Index), nil
		}
	}
	return x, -1, nil
}

// flat are the ranges of the calls, cut where an inner one begins or ends.
func (x *inlines) flat() ranges.Flat { return ranges.Flatten(slices.Clone(x.ranges)) }

// findInlines reads the inlined calls of a function. count is the number of ranges that
// they add to the indexes.
func (b *body) findInlines(f *function) (x *inlines, count int, err error) {
	w := b.walk(b.offset + uint64(f.offset))
	budget := int64(b.end-b.offset) + 1<<20
	tmp := scratchPool.Get().(*scratch)
	defer scratchPool.Put(tmp)
	tmp.ranges, tmp.calls = tmp.ranges[:0], tmp.calls[:0]
	calls := callStack{open: tmp.stack[:0], around: -1}
	size := uint64(len(w.info))
	for w.off < size {
		a, entry, err := w.next()
		if err != nil {
			return nil, 0, err
		}
		if a == nil {
			if calls.leave() {
				break
			}
			continue
		}
		self := calls.around
		switch {
		case a.tag == dw.TagInlinedSubroutine && calls.hidden == 0:
			self = int32(len(tmp.calls))
			tmp.calls = append(tmp.calls, inlined{offset: uint32(entry - b.offset), parent: calls.around})
			if !a.hasCode {
				break
			}
			e, _ := w.extent(a)
			if tmp.list, err = b.spans(tmp.list[:0], &e, &budget); err != nil {
				return nil, 0, err
			}
			tmp.ranges = appendRanges(tmp.ranges, tmp.list, self)
		case len(calls.open) > 0 && calls.hidden == 0 && a.hasChildren && canSkip(a):
			if next := w.sibling(a); next != 0 {
				w.off = next
				continue
			}
			if a.tag == dw.TagSubprogram {
				calls.hidden = len(calls.open) + 1
			}
		}
		if err := w.pass(a, entry); err != nil {
			return nil, 0, err
		}
		if a.hasChildren && !calls.enter(self) {
			return nil, 0, b.wrong(entry, "entry nested deeper than %d", maxDepth)
		}
		if len(calls.open) == 0 {
			break
		}
	}
	tmp.stack = calls.open
	count = len(tmp.ranges) + len(tmp.calls)
	if !b.file.countRanges(count) {
		return nil, 0, b.wrong(b.offset, "the ranges of inlined calls are more than its size makes believable")
	}
	return &inlines{list: slices.Clone(tmp.calls), ranges: slices.Clone(tmp.ranges)}, count, nil
}

// callStack tracks the inlined call that the next entry is in.
type callStack struct {
	open   []int32 // by depth: the call around the entries there
	around int32   // the innermost call; -1: the function itself
	hidden int     // the depth of a nested function; 0: the entry is in none
}

// enter begins the children of an entry that are in a call; it is false where they are too
// deep.
func (s *callStack) enter(call int32) bool {
	s.open = append(s.open, s.around)
	s.around = call
	return len(s.open) <= maxDepth
}

// leave ends an entry with children, and reports whether it was the outermost one.
func (s *callStack) leave() (isEnd bool) {
	depth := len(s.open) - 1
	if depth < 0 {
		return true
	}
	s.around, s.open = s.open[depth], s.open[:depth]
	if depth < s.hidden {
		s.hidden = 0
	}
	return depth == 0
}

// scratch is the temporary memory for finding functions and inlined calls.
type scratch struct {
	ranges []ranges.Range
	calls  []inlined
	list   []span
	stack  []int32
}

var scratchPool = sync.Pool{New: func() any { return &scratch{} }}
