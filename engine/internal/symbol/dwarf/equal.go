// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file tells apart functions that a linker merged because their code is identical
// (identical code folding). Each of them has a sequence of rows in the line table. gold
// leaves the addresses of the code in each entry, too; lld and mold leave them in one entry
// only.

const (
	// maxEqualUnits bounds the units that are searched for functions with the same code.
	maxEqualUnits = 256
	// maxEqual bounds the functions and the sequences that are compared with each other.
	maxEqual = 1 << 10
	// maxDeclarationRows is the number of rows of a sequence that are compared with the
	// line of a function's declaration.
	maxDeclarationRows = 64
	// maxDistance is more than the number of lines between any declaration and a function's
	// first line.
	maxDistance = math.MaxInt
)

// sharing is a function that may share its code with others.
type sharing struct {
	lines  *body     // the unit that has its lines
	holder *body     // the unit that has its entry: the split unit, if there is one
	offset uint32    // of the entry, from the unit's header
	f      *function // nil: its entry has no addresses
}

func (p *sharing) entry() uint64 { return p.holder.offset + uint64(p.offset) }

func (p *sharing) is(e Entry) bool { return p.holder == e.b && p.entry() == e.off }

// Equals are the functions that share the code at an address of the object, first the one
// that Frames names: one with lines there, if there is one. The list is empty where only
// one function is known: entries of the same name and declaration count as one.
func (r *Reader) Equals(address uint64) (list []Entry, err error) {
	err = r.protect(func() error {
		found, err := r.equals(address)
		if err != nil {
			return err
		}
		for _, p := range found {
			e, err := p.holder.entryAt(p.entry())
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, err
}

// equals is Equals with the units.
func (r *Reader) equals(address uint64) (list []sharing, err error) {
	if list, err = r.sharingAt(address); err != nil || len(list) == 0 {
		return nil, err
	}
	if list, err = r.appendRemoved(list); err != nil || len(list) < 2 || !haveSequences(list) {
		return nil, err
	}
	if list, err = r.withOtherNames(list); err != nil {
		return nil, err
	}
	for i := range list {
		if _, isKnown := r.placeIn(list, &list[i], address); isKnown {
			list[0], list[i] = list[i], list[0]
			break
		}
	}
	return list, nil
}

// haveSequences reports whether line tables have several sequences from the start of
// functions. One sequence describes one piece of code with several names, as assemblers
// write it for memcpy and memmove of the C library.
func haveSequences(list []sharing) bool {
	seen := map[*body]bool{}
	sequences := 0
	for _, p := range list {
		if seen[p.lines] {
			continue
		}
		seen[p.lines] = true
		if t, err := p.lines.lineTable(); err == nil && t != nil {
			sequences += len(t.sequencesFrom(list[0].f.entry))
		}
	}
	return sequences > 1
}

// sharingAt are the functions whose entries contain an address, and that begin at the same
// one.
func (r *Reader) sharingAt(address uint64) (list []sharing, err error) {
	err = r.maps(address, func(m *unitMap) (isFound bool, failed error) {
		list = list[:0]
		m.candidates(address, maxEqualUnits, func(u *unit) bool {
			b, err := u.open()
			if err == nil {
				list, err = r.appendSharing(list, b, address)
			}
			if err != nil {
				failed = err
			}
			return len(list) < maxEqual
		})
		return len(list) > 0, failed
	})
	return list, err
}

// appendSharing appends the functions of a unit.
func (r *Reader) appendSharing(list []sharing, b *body, address uint64) ([]sharing, error) {
	holder, f, err := r.functionAt(b, address)
	if err != nil || f == nil || !f.hasEntry {
		return list, err
	}
	if len(list) > 0 && list[0].f.entry != f.entry {
		return list, nil
	}
	list = append(list, sharing{b, holder, f.offset, f})
	x, err := holder.functions.get(func() (*functions, error) { return holder.findFunctions(false) })
	if err != nil {
		return list, err
	}
	for _, s := range x.equalAt(address) {
		if other := &x.list[s.Index]; other.offset != f.offset && other.hasEntry && other.entry == f.entry {
			list = append(list, sharing{b, holder, other.offset, other})
		}
	}
	return list, nil
}

// appendRemoved appends the functions without addresses of the same units that have lines at
// the start of the first function of a list. A function that shares its code with no other
// costs one look at the table.
func (r *Reader) appendRemoved(list []sharing) ([]sharing, error) {
	start, size := list[0].f.entry, list[0].size()
	for _, p := range list {
		t, err := p.lines.lineTable()
		if err != nil || t == nil || len(t.sequencesFrom(start)) < 2 {
			continue // an unreadable table was reported already
		}
		x, err := p.holder.functions.get(func() (*functions, error) { return p.holder.findFunctions(false) })
		if err != nil {
			return nil, err
		}
		all := list
		for _, g := range x.removed {
			if uint64(g.size) == size && len(all) < maxEqual && !slices.ContainsFunc(all, func(o sharing) bool { return o.holder == p.holder && o.offset == g.offset }) {
				all = append(all, sharing{p.lines, p.holder, g.offset, nil})
			}
		}
		for i := len(list); i < len(all); i++ {
			if r.sequenceOf(t, start, all, &all[i]) >= 0 {
				list = append(list[:len(list):len(list)], all[i])
			}
		}
	}
	return list, nil
}

// size is the length of a function whose code is in one piece; 0 for others.
func (p *sharing) size() uint64 {
	x, err := p.holder.functions.get(func() (*functions, error) { return p.holder.findFunctions(false) })
	if err != nil {
		return 0
	}
	if i := sort.Search(len(x.where.Starts), func(i int) bool { return x.where.Starts[i] > p.f.entry }); i > 0 && i < len(x.where.Starts) {
		return x.where.Starts[i] - x.where.Starts[i-1]
	}
	return 0
}

// EqualTo is the callee of a call site that has no addresses because a linker replaced its
// code by that of another function at an address of the object; ok is false where the
// callee is no such function.
func (r *Reader) EqualTo(address uint64, callee Entry) (function Entry, ok bool, err error) {
	err = r.protect(func() error {
		list, err := r.sharingAt(address)
		if err != nil || len(list) == 0 {
			return err
		}
		root, err := callee.Root()
		if err != nil {
			return err
		}
		removed, err := r.removedOf(root, &list[0])
		if err != nil {
			return err
		}
		for _, e := range removed {
			if p := newSharing(e); r.isFolded(&list[0], &p) {
				function, ok = e, true
				break
			}
		}
		return nil
	})
	return function, ok, err
}

// newSharing returns a function without addresses.
func newSharing(e Entry) sharing {
	lines := e.b
	if u := e.b.unit.skeleton; u != nil {
		if b, err := u.open(); err == nil {
			lines = b
		}
	}
	return sharing{lines, e.b, uint32(e.off - e.b.offset), nil}
}

// isFolded reports whether a function without addresses has the code of another one: it is
// as long, and has lines there.
func (r *Reader) isFolded(kept, p *sharing) bool {
	x, err := p.holder.functions.get(func() (*functions, error) { return p.holder.findFunctions(false) })
	if err != nil {
		return false
	}
	i := sort.Search(len(x.removed), func(i int) bool { return x.removed[i].offset >= p.offset })
	if i == len(x.removed) || x.removed[i].offset != p.offset || uint64(x.removed[i].size) != kept.size() {
		return false
	}
	t, err := p.lines.lineTable()
	return err == nil && t != nil && r.sequenceOf(t, kept.f.entry, []sharing{*kept, *p}, p) >= 0
}

// removedOf are the functions without addresses that have a root, and may have the code of a
// function: in the root's unit, and in other units by its linkage name.
func (r *Reader) removedOf(root Entry, kept *sharing) (list []Entry, err error) {
	x, err := root.b.functions.get(func() (*functions, error) { return root.b.findFunctions(false) })
	if err != nil {
		return nil, err
	}
	for _, g := range x.removed {
		e, err := root.b.entryAt(root.b.offset + uint64(g.offset))
		if err != nil {
			return nil, err
		}
		if own, err := e.Root(); err == nil && own.Is(root) {
			list = append(list, e)
		}
	}
	name := root.LinkageName()
	if len(list) > 0 || name == "" || r.infoSize() > maxNamedBytes {
		return list, nil
	}
	named, err := r.removedNear(kept)
	if err != nil {
		return nil, err
	}
	for _, k := range named[name] {
		e, err := k.entry()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// maxLineSearches bounds the searches for one address in all line tables of a reader: to index
// the units takes longer than one, but not than all of them.
const maxLineSearches = 32

// removedNear are the functions without addresses by their linkage names: of all units, or of
// the unit of a function alone where no other has lines from its start.
func (r *Reader) removedNear(kept *sharing) (map[string][]entryKey, error) {
	if t, err := kept.lines.lineTable(); err == nil && t != nil && r.lineSearches.Add(1) <= maxLineSearches && t.isAloneAt(kept.f.entry) {
		named := map[string][]entryKey{}
		if err := r.addLinkage(named, kept.lines.unit, (*functions).removedOffsets); err == nil {
			return named, nil
		}
	}
	return r.removed.get(func() (map[string][]entryKey, error) { return r.linkageOf((*functions).removedOffsets) })
}

// isAloneAt reports whether no other table has a sequence that begins at an address: the
// lower four bytes of the address, which DW_LNE_set_address would have, are not there.
func (t *lineTable) isAloneAt(start uint64) bool {
	f := t.file
	if f.isPart || t.addrSize < 4 || f.rest.line.Need(uint64(len(f.line))) != nil {
		return false
	}
	set := binary.LittleEndian.AppendUint32(nil, uint32(start))
	if f.isBigEndian {
		set = binary.BigEndian.AppendUint32(nil, uint32(start))
	}
	return !bytes.Contains(f.line[:t.offset], set) && !bytes.Contains(f.line[t.end:], set)
}

func (x *functions) removedOffsets() (list []uint32) {
	for _, g := range x.removed {
		list = append(list, g.offset)
	}
	return list
}

// identity tells functions apart.
type identity struct {
	readable, linkage, file string
	line                    int
}

// withOtherNames keeps one of the functions that have the same name and declaration; it
// returns nil where only one is left.
func (r *Reader) withOtherNames(list []sharing) ([]sharing, error) {
	seen := map[identity]bool{}
	kept := list[:0]
	for _, p := range list {
		n, err := r.functionName(p.holder, p.entry())
		if err != nil {
			return nil, err
		}
		if d := (identity{n.readable, n.linkage, n.file, n.line}); !seen[d] {
			seen[d] = true
			kept = append(kept, p)
		}
	}
	if len(kept) < 2 {
		return nil, nil
	}
	return kept, nil
}

// findEqual keeps the ranges of functions that occur several times in a sorted list.
func (x *functions) findEqual(sorted []ranges.Range) {
	for i := range sorted {
		isSame := func(k int) bool { return k >= 0 && k < len(sorted) && isSameRange(sorted[k], sorted[i]) }
		if isSame(i-1) || isSame(i+1) {
			x.equal = append(x.equal, sorted[i])
		}
	}
}

func isSameRange(a, b ranges.Range) bool { return a.Start == b.Start && a.End == b.End }

// equalAt are the ranges that contain an address and belong to several functions.
func (x *functions) equalAt(address uint64) []ranges.Range {
	end := sort.Search(len(x.equal), func(i int) bool { return x.equal[i].Start > address })
	if end == 0 || address >= x.equal[end-1].End {
		return nil
	}
	start := end - 1
	for start > 0 && isSameRange(x.equal[start-1], x.equal[end-1]) {
		start--
	}
	return x.equal[start:end]
}

// FramesIn appends the frames at an address of an object that is not relocatable, as Frames
// does, for one of several functions that share the code there: an entry of Equals or
// EqualTo, or the zero Entry for the first one. The position is also of that function.
func (r *Reader) FramesIn(dst []trace.Symbol, address uint64, function Entry) ([]trace.Symbol, error) {
	before := len(dst)
	err := r.protect(func() error {
		list, p, err := r.chosen(address, function)
		if err != nil || p == nil {
			return err
		}
		place, _ := r.placeIn(list, p, address)
		if p.f != nil {
			dst, err = r.chainIn(dst, p.holder, p.f, &linePlace{Symbol: place}, p.lines, address, &ownFrameStyle)
		} else {
			dst, err = r.removedIn(dst, p, place, list)
		}
		if err == nil {
			dst[len(dst)-1].Equals = len(list)
		}
		return err
	})
	if err != nil {
		return dst[:before], err
	}
	return dst, nil
}

// chosen finds a function among those that share the code at an address, and returns all of
// them; p is nil where it is not one of them.
func (r *Reader) chosen(address uint64, function Entry) (list []sharing, p *sharing, err error) {
	if list, err = r.equals(address); err != nil {
		return nil, nil, err
	}
	if function.IsZero() {
		if len(list) > 0 {
			p = &list[0]
		}
		return list, p, nil
	}
	for i := range list {
		if list[i].is(function) {
			return list, &list[i], nil
		}
	}
	if len(list) == 0 {
		if list, err = r.sharingAt(address); err != nil || len(list) == 0 {
			return nil, nil, err
		}
		list = list[:1]
	}
	list = append(list, newSharing(function))
	return list, &list[len(list)-1], nil
}

// removedIn appends the frame of a function whose entry has no addresses: its inlined calls
// are unknown. The position is left out where it belongs to another, inlined, function.
func (r *Reader) removedIn(dst []trace.Symbol, p *sharing, place trace.Symbol, list []sharing) ([]trace.Symbol, error) {
	name, err := r.functionName(p.holder, p.entry())
	if err != nil {
		return dst, err
	}
	if place.File != name.file || place.Line < name.line {
		place = trace.Symbol{}
	}
	ownFrameStyle.give(name, &place)
	for i := range list {
		if f := list[i].f; f != nil {
			place.Start, place.HasStart = f.entry, f.hasEntry
		}
	}
	return append(dst, place), nil
}

// placeIn is the position of an address in one of several functions that have the same
// code.
func (r *Reader) placeIn(list []sharing, p *sharing, address uint64) (place trace.Symbol, isKnown bool) {
	t, err := p.lines.lineTable()
	kept := slices.IndexFunc(list, func(p sharing) bool { return p.f != nil })
	if err != nil || t == nil || kept < 0 {
		return place, false
	}
	n := r.sequenceOf(t, list[kept].f.entry, list, p)
	if n < 0 || !t.sequences[n].holds(address) {
		return place, false
	}
	row, ok := t.rowIn(&t.sequences[n], address)
	return place, ok && r.giveRow(&place, p.lines, t, &row)
}

// sequencesFrom are the sequences that begin at an address, maxEqual at most.
func (t *lineTable) sequencesFrom(start uint64) []sequence {
	first := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].start >= start })
	end := first
	for end < len(t.sequences) && end-first < maxEqual && t.sequences[end].start == start {
		end++
	}
	return t.sequences[first:end]
}

// sequenceOf is the index of the sequence with the lines of one of several functions with
// the same code, which begins at an address; -1 where it is unknown. It is the sequence
// with the line that follows the function's declaration most closely, if no other
// function's declaration is closer: some linkers keep one of the sequences. Where several
// remain, as for a template's instances, their lines are the same.
func (r *Reader) sequenceOf(t *lineTable, start uint64, list []sharing, p *sharing) int {
	best, nearest := -1, maxDistance
	first := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].start >= start })
	candidates := t.sequencesFrom(start)
	for i := range candidates {
		if d := r.linesBehind(t, &candidates[i], p); d < nearest {
			best, nearest = i, d
		}
	}
	if best < 0 {
		return -1
	}
	for i := range list {
		if other := &list[i]; other.lines == p.lines && r.linesBehind(t, &candidates[best], other) < nearest {
			return -1
		}
	}
	return first + best
}

// linesBehind is the distance from a function's declaration to the nearest later line of a
// sequence.
func (r *Reader) linesBehind(t *lineTable, s *sequence, p *sharing) int {
	name, err := r.functionName(p.holder, p.entry())
	if err != nil || name.line == 0 {
		return maxDistance
	}
	nearest, rows := maxDistance, 0
	t.rowsOf(s, s.span, func(_ span, row *row) {
		if rows++; rows > maxDeclarationRows || uint64(row.file) >= uint64(len(t.files)) || int(row.line) < name.line {
			return
		}
		if d := int(row.line) - name.line; d < nearest && p.lines.fileName(uint64(row.file)).path == name.file {
			nearest = d
		}
	})
	return nearest
}

// ScopesIn is Scopes for a function of Equals; with the zero Entry it is Scopes. A function
// whose entry has no addresses has none.
func (r *Reader) ScopesIn(address uint64, function Entry) (scopes []Scope, err error) {
	if function.IsZero() {
		return r.Scopes(address)
	}
	err = r.protect(func() error {
		_, p, err := r.chosen(address, function)
		if err == nil && p != nil && p.f != nil {
			scopes, err = r.scopesIn(p.holder, p.f, address)
		}
		return err
	})
	return scopes, err
}

// CallSiteIn is CallSite for a calling function of Equals; with the zero Entry it is
// CallSite.
func (r *Reader) CallSiteIn(returnPC uint64, function Entry) (site CallSite, err error) {
	if function.IsZero() {
		return r.CallSite(returnPC)
	}
	err = r.protect(func() error {
		site, err = function.b.callSiteAt(function.off, returnPC)
		return err
	})
	return site, err
}
