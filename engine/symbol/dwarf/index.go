package dwarf

import (
	"cmp"
	"container/heap"
	godwarf "debug/dwarf"
	"errors"
	"fmt"
	"slices"
)

// Bounds on one unit.
const (
	maxDepth = 1024 // nesting of entries
	// Work counts fields and bytes of strings of the entries that are decoded. A
	// sound unit needs a hundredth of what is allowed.
	workPerByte = 1024
	workSlack   = 1 << 22
	workField   = 32
)

var errTooMuchWork = errors.New("entries refer to more data than the size of the unit makes believable")

// charge accounts for an entry that was decoded.
func charge(work *int64, e *godwarf.Entry) error {
	*work -= workField
	for i := range e.Field {
		*work -= workField
		if s, ok := e.Field[i].Val.(string); ok {
			*work -= int64(len(s))
		}
	}
	if *work < 0 {
		return errTooMuchWork
	}
	return nil
}

// An index is what a unit says of code, by address.
type index struct {
	scopes   []scope
	segments []segment // disjoint, by start
	decls    map[godwarf.Offset]decl
	spaces   []space
	lines    *lineTable // nil: none
}

// A scope is a function with code, or a call inlined into one.
type scope struct {
	decl                           decl
	offset                         godwarf.Offset
	parent                         int32 // the scope that it is inlined into; -1
	inlined                        bool
	hasEntry                       bool
	entry                          uint64
	callFile, callLine, callColumn uint32
}

// A decl is what an entry says of a function's name.
type decl struct {
	name, linkage string
	origin        godwarf.Offset // DW_AT_abstract_origin or DW_AT_specification
	hasOrigin     bool
	missing       bool  // a name or reference leads into a supplementary file
	space         int32 // the space that it is declared in; -1
}

// A space is a namespace, a class, or a function that holds declarations.
type space struct {
	name   string
	parent int32
}

// A segment says which scope is the innermost one over a range.
type segment struct {
	span
	scope int32
}

// scopeAt returns the innermost scope that holds an address, or -1.
func (x *index) scopeAt(address uint64) int {
	n, _ := slices.BinarySearchFunc(x.segments, address, func(s segment, a uint64) int {
		if s.start > a {
			return 1
		}
		return -1
	})
	if n == 0 || !x.segments[n-1].holds(address) {
		return -1
	}
	return int(x.segments[n-1].scope)
}

// indexOf returns a unit's index, made once. Called with r.mu held, or from open.
func (r *Reader) indexOf(u *unit) (*index, error) {
	if u.index == nil && u.err == nil {
		// Should decoding panic, the unit is not tried again.
		u.err = fmt.Errorf(".debug_info: unit at %#x: cannot be decoded", u.offset)
		x, err := r.buildIndex(u)
		if err != nil {
			u.err = fmt.Errorf(".debug_info: unit at %#x: %w", u.offset, err)
		} else {
			u.index, u.err = x, nil
		}
	}
	return u.index, u.err
}

// An open entry is one whose children are being read.
type openEntry struct {
	entry *godwarf.Entry // of a function or an inlined call; nil for others
	scope int32          // -1 until it is needed
	outer int32          // in the stack: the entry of a function around this one; -1
	space int32
}

func (r *Reader) buildIndex(u *unit) (*index, error) {
	x := &index{decls: make(map[godwarf.Offset]decl)}
	lines, err := r.lines(u)
	if err != nil {
		// Names can be told without positions.
		r.problem(fmt.Sprintf(".debug_info: unit at %#x: %v", u.offset, err))
	}
	x.lines = lines
	if u.first >= u.end {
		return x, nil
	}
	b := builder{Reader: r, u: u, x: x, budget: int(u.end-u.offset) + 1<<20}
	reader := r.data.Reader()
	reader.Seek(godwarf.Offset(u.first))
	work := int64(u.end-u.offset)*workPerByte + workSlack
	for {
		e, err := reader.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if e.Tag == 0 {
			if len(b.stack) <= 1 {
				break
			}
			b.stack = b.stack[:len(b.stack)-1]
			continue
		}
		if off := uint64(e.Offset); off < u.first || off >= u.end {
			break // the last entries' ends are missing
		}
		if err := charge(&work, e); err != nil {
			return nil, fmt.Errorf("entry at %#x: %w", e.Offset, err)
		}
		if err := b.add(e); err != nil {
			return nil, fmt.Errorf("entry at %#x: %w", e.Offset, err)
		}
		if len(b.stack) == 0 { // the unit's own entry, without children
			break
		}
		if len(b.stack) > maxDepth {
			return nil, fmt.Errorf("entry at %#x: nested deeper than %d", e.Offset, maxDepth)
		}
	}
	x.segments = flatten(b.ranges)
	return x, nil
}

// A builder adds the entries of one unit to its index.
type builder struct {
	*Reader
	u      *unit
	x      *index
	stack  []openEntry
	ranges []segment // of every scope, in the order of the entries
	budget int
}

func (b *builder) add(e *godwarf.Entry) error {
	self := openEntry{scope: -1, outer: -1, space: -1}
	if n := len(b.stack); n > 0 {
		top := b.stack[n-1]
		self.outer, self.space = top.outer, top.space
		if top.entry != nil {
			self.outer = int32(n - 1)
		}
	}
	switch e.Tag {
	case godwarf.TagSubprogram, godwarf.TagInlinedSubroutine:
		d := b.readDecl(e, self.space)
		if e.Tag == godwarf.TagSubprogram {
			b.x.decls[e.Offset] = d
		}
		list, entry, hasEntry, err := b.Reader.ranges(b.u, e, &b.budget)
		if err != nil {
			return err
		}
		self.entry = e
		if len(list) > 0 {
			self.scope = b.newScope(self)
			s := &b.x.scopes[self.scope]
			s.entry, s.hasEntry = entry, hasEntry
			for _, r := range list {
				b.ranges = append(b.ranges, segment{r, self.scope})
			}
		}
		if e.Children {
			self.space = b.newSpace(d.name, self.space)
		}
	case godwarf.TagNamespace:
		self.space = b.newSpace(nameOr(e, "(anonymous namespace)"), self.space)
	case godwarf.TagClassType:
		self.space = b.newSpace(nameOr(e, "(anonymous class)"), self.space)
	case godwarf.TagStructType:
		self.space = b.newSpace(nameOr(e, "(anonymous struct)"), self.space)
	case godwarf.TagUnionType:
		self.space = b.newSpace(nameOr(e, "(anonymous union)"), self.space)
	case godwarf.TagEnumerationType:
		self.space = b.newSpace(nameOr(e, "(anonymous enum)"), self.space)
	}
	if e.Children {
		b.stack = append(b.stack, self)
	}
	return nil
}

func nameOr(e *godwarf.Entry, anonymous string) string {
	if name, ok := e.Val(godwarf.AttrName).(string); ok && name != "" {
		return name
	}
	return anonymous
}

func (b *builder) newSpace(name string, parent int32) int32 {
	b.x.spaces = append(b.x.spaces, space{name, parent})
	return int32(len(b.x.spaces) - 1)
}

// newScope makes the scope of an entry, and of those it is inlined into.
func (b *builder) newScope(o openEntry) int32 {
	e := o.entry
	s := scope{offset: e.Offset, parent: -1, inlined: e.Tag == godwarf.TagInlinedSubroutine}
	s.decl = b.readDecl(e, o.space)
	if s.inlined {
		s.callFile = small(e, godwarf.AttrCallFile)
		s.callLine = small(e, godwarf.AttrCallLine)
		s.callColumn = small(e, godwarf.AttrCallColumn)
		if o.outer >= 0 {
			outer := &b.stack[o.outer]
			if outer.scope < 0 {
				outer.scope = b.newScope(*outer)
			}
			s.parent = outer.scope
		}
	}
	b.x.scopes = append(b.x.scopes, s)
	return int32(len(b.x.scopes) - 1)
}

// small reads a constant that is a line, a column or a file number.
func small(e *godwarf.Entry, attr godwarf.Attr) uint32 {
	v, _ := e.Val(attr).(int64)
	if v < 0 || v > 1<<31-1 {
		return 0
	}
	return uint32(v)
}

func (b *builder) readDecl(e *godwarf.Entry, space int32) decl {
	d := decl{space: space}
	for i := range e.Field {
		f := &e.Field[i]
		switch f.Attr {
		case godwarf.AttrName:
			d.name, _ = f.Val.(string)
			d.missing = d.missing || inSupplement(f)
		case godwarf.AttrLinkageName, attrMIPSLinkage:
			if s, ok := f.Val.(string); ok {
				d.linkage = s
			}
			d.missing = d.missing || inSupplement(f)
		case godwarf.AttrAbstractOrigin, godwarf.AttrSpecification:
			if off, ok := f.Val.(godwarf.Offset); ok {
				d.origin, d.hasOrigin = off, true
			}
			d.missing = d.missing || inSupplement(f)
		}
	}
	return d
}

func inSupplement(f *godwarf.Field) bool {
	return f.Class == godwarf.ClassReferenceAlt || f.Class == godwarf.ClassStringAlt
}

// flatten cuts ranges into disjoint segments. Where several ranges hold an
// address the one that came last wins: entries come before those inside them.
func flatten(ranges []segment) []segment {
	order := make([]int32, len(ranges))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ranges[a].start, ranges[b].start), cmp.Compare(a, b))
	})
	var (
		out    []segment
		active = rangeHeap{ranges: ranges}
		pos    uint64
	)
	emit := func(end uint64, scope int32) {
		if end <= pos {
			return
		}
		if n := len(out); n > 0 && out[n-1].end == pos && out[n-1].scope == scope {
			out[n-1].end = end
		} else {
			out = append(out, segment{span{pos, end}, scope})
		}
		pos = end
	}
	// until writes what the active ranges cover before limit.
	until := func(limit uint64) {
		for len(active.open) > 0 {
			top := ranges[active.open[0]]
			if top.end <= pos {
				heap.Pop(&active)
				continue
			}
			if pos >= limit {
				return
			}
			emit(min(top.end, limit), top.scope)
		}
	}
	for _, i := range order {
		until(ranges[i].start)
		pos = max(pos, ranges[i].start)
		heap.Push(&active, i)
	}
	until(^uint64(0))
	return out
}

// rangeHeap has the range that came last on top.
type rangeHeap struct {
	ranges []segment
	open   []int32
}

func (h *rangeHeap) Len() int           { return len(h.open) }
func (h *rangeHeap) Less(i, j int) bool { return h.open[i] > h.open[j] }
func (h *rangeHeap) Swap(i, j int)      { h.open[i], h.open[j] = h.open[j], h.open[i] }
func (h *rangeHeap) Push(v any)         { h.open = append(h.open, v.(int32)) }
func (h *rangeHeap) Pop() any {
	n := len(h.open) - 1
	v := h.open[n]
	h.open = h.open[:n]
	return v
}

func compareUint(a, b uint64) int { return cmp.Compare(a, b) }
