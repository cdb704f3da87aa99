// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// CodeMap has the functions that have code, each with its part of it. It does not change.
type CodeMap struct {
	r       *Reader
	units   []*unit
	numbers map[*unit]int32 // of the units; nil until needed
	pieces  []codePiece     // by unit, function and address
	covers  []span          // the pieces, merged
}

// codePiece is code of a function, which is identified by its entry.
type codePiece struct {
	span
	unit     int32  // index in the file's units
	offset   uint32 // of the entry, from the header of the unit that has it
	isShared bool   // another function of another name has the code, too
}

// CodeMap finds the functions of all units. Units that cannot be read become problems. It
// is empty for a relocatable object, where an address does not tell its section.
func (r *Reader) CodeMap() (*CodeMap, error) {
	m := &CodeMap{r: r}
	if r.main.layout != nil {
		return m, nil
	}
	err := r.protect(func() error {
		r.openUnits()
		m.units = r.everyUnit()
		passed := uint64(0)
		for i, u := range m.units {
			if passed += u.end - u.offset; passed >= restEvery {
				passed = 0
				r.ReleasePages()
			}
			if err := m.addUnit(int32(i), u); err != nil {
				r.failedUnit(u, err)
			}
		}
		m.settle()
		return nil
	})
	return m, err
}

// addUnit adds the code of a unit's functions.
func (m *CodeMap) addUnit(number int32, u *unit) error {
	if u.isType() {
		return nil
	}
	b, err := u.open()
	if err != nil {
		return err
	}
	_, x, err := m.r.everyFunction(b)
	if err != nil {
		return err
	}
	for s := range x.where.All() {
		m.pieces = append(m.pieces, codePiece{span: span{s.Start, s.End}, unit: number, offset: x.list[s.Index].offset})
	}
	return nil
}

// everyFunction returns the functions of a unit, and the unit that describes them.
func (r *Reader) everyFunction(b *body) (holder *body, x *functions, err error) {
	if holder, err = r.splitOf(b); err != nil {
		return b, nil, err
	}
	x, err = holder.all.get(func() (*functions, error) { return holder.findFunctions(true) })
	return holder, x, err
}

// settle assigns each address to one function. Most code has one; where several claim it,
// Frames decides.
func (m *CodeMap) settle() {
	slices.SortFunc(m.pieces, func(a, b codePiece) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.unit, b.unit), cmp.Compare(a.offset, b.offset))
	})
	var settled []codePiece
	for first := 0; first < len(m.pieces); {
		next, end := first+1, m.pieces[first].end
		for next < len(m.pieces) && m.pieces[next].start < end {
			end = max(end, m.pieces[next].end)
			next++
		}
		if next == first+1 {
			settled = append(settled, m.pieces[first])
		} else {
			settled = m.divide(settled, m.pieces[first:next])
		}
		first = next
	}
	for _, p := range settled {
		if n := len(m.covers); n > 0 && m.covers[n-1].end == p.start {
			m.covers[n-1].end = p.end
			continue
		}
		m.covers = append(m.covers, p.span)
	}
	slices.SortFunc(settled, func(a, b codePiece) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.offset, b.offset), cmp.Compare(a.start, b.start))
	})
	m.pieces = slices.Clip(settled)
	m.r.main.addKept(sizeOf[codePiece](len(m.pieces)) + sizeOf[span](cap(m.covers)))
}

// divide appends code that several functions claim, cut where one of them begins or ends.
func (m *CodeMap) divide(settled, claims []codePiece) []codePiece {
	cuts := make([]uint64, 0, 2*len(claims))
	for i := range claims {
		cuts = append(cuts, claims[i].start, claims[i].end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := range cuts[:len(cuts)-1] {
		p, ok := m.owner(claims, span{cuts[i], cuts[i+1]})
		if !ok {
			continue
		}
		n := len(settled)
		if n > 0 && settled[n-1].unit == p.unit && settled[n-1].offset == p.offset && settled[n-1].end == p.start {
			settled[n-1].end = p.end
			settled[n-1].isShared = settled[n-1].isShared || p.isShared
			continue
		}
		settled = append(settled, p)
	}
	return settled
}

// owner is the piece of code of the function that Frames names, among several that claim
// it.
func (m *CodeMap) owner(claims []codePiece, code span) (owner codePiece, ok bool) {
	i := sort.Search(len(claims), func(i int) bool { return claims[i].start > code.start })
	var near []codePiece // claimants, first the one that begins last
	for steps := 0; i > 0 && len(near) < maxCandidates && steps < maxSteps; i, steps = i-1, steps+1 {
		if claims[i-1].end > code.start {
			near = append(near, claims[i-1])
		}
	}
	if len(near) == 0 {
		return owner, false
	}
	owner = codePiece{span: code, unit: near[0].unit, offset: near[0].offset}
	if len(near) > 1 {
		if u, f := m.r.namedAt(code.start); f != nil {
			owner.unit, owner.offset = m.numberOf(u), f.offset
		}
		owner.isShared = slices.ContainsFunc(near, func(p codePiece) bool { return !m.isSameName(&p, &owner) })
	}
	return owner, true
}

// numberOf is the index of a unit.
func (m *CodeMap) numberOf(u *unit) int32 {
	if m.numbers == nil {
		m.numbers = make(map[*unit]int32, len(m.units))
		for i, u := range m.units {
			m.numbers[u] = int32(i)
		}
	}
	return m.numbers[u]
}

// namedAt is the function that Frames names at an address, and its unit; nil where it names
// none.
func (r *Reader) namedAt(address uint64) (u *unit, f *function) {
	_ = r.maps(address, func(m *unitMap) (isFound bool, err error) { // errors were reported before
		m.candidates(address, maxCandidates, func(c *unit) bool {
			b, err := c.open()
			if err != nil {
				return true
			}
			if _, found, err := r.functionAt(b, address); err == nil && found != nil {
				u, f = c, found
			}
			return f == nil
		})
		return f != nil, nil
	})
	return u, f
}

// isSameName reports whether the functions of two pieces have the same name.
func (m *CodeMap) isSameName(a, b *codePiece) bool {
	if a.unit == b.unit && a.offset == b.offset {
		return true
	}
	x, y := m.nameOf(a), m.nameOf(b)
	return x == nil || y == nil || x.readable == y.readable && x.linkage == y.linkage
}

func (m *CodeMap) nameOf(p *codePiece) *functionName {
	b, err := m.units[p.unit].open()
	if err != nil {
		return nil
	}
	holder, _, err := m.r.everyFunction(b)
	if err != nil {
		return nil
	}
	name, err := m.r.functionName(holder, holder.offset+uint64(p.offset))
	if err != nil {
		return nil
	}
	return name
}

// Covers reports whether a function has code at an address, and the end of that code;
// without one, the end is the start of the next function.
func (m *CodeMap) Covers(address uint64) (covers bool, end uint64) {
	i := sort.Search(len(m.covers), func(i int) bool { return m.covers[i].start > address })
	if i > 0 && address < m.covers[i-1].end {
		return true, m.covers[i-1].end
	}
	if i < len(m.covers) {
		return false, m.covers[i].start
	}
	return false, ^uint64(0)
}

// EachFunction calls yield with every function, unit by unit, until it returns false; the argument
// is reused. Functions that cannot be read become problems. The Reader must have no other
// user meanwhile: the lines of a unit are dropped after it.
func (m *CodeMap) EachFunction(yield func(*symbol.FunctionCode) bool) error {
	return m.r.protect(func() error {
		c := coder{r: m.r}
		for first := 0; first < len(m.pieces); {
			p := &m.pieces[first]
			next := first + 1
			for next < len(m.pieces) && m.pieces[next].unit == p.unit && m.pieces[next].offset == p.offset {
				next++
			}
			u := m.units[p.unit]
			isRead, err := c.read(u, m.pieces[first:next])
			if err != nil {
				m.r.failedUnit(u, err)
			}
			if isRead && !yield(&c.function) {
				c.leave()
				break
			}
			first = next
		}
		c.leave()
		return nil
	})
}

// Lines appends the lines of code without a function, such as assembly, from the unit that
// has a line for its start.
func (m *CodeMap) Lines(dst []symbol.CodeLine, code symbol.CodeRange) []symbol.CodeLine {
	_ = m.r.protect(func() error {
		return m.r.maps(code.Start, func(units *unitMap) (isFound bool, err error) {
			units.candidates(code.Start, maxCandidates, func(u *unit) bool {
				b, err := u.open()
				if err != nil {
					return true
				}
				before := len(dst)
				dst = m.r.linesOf(dst, b, span{code.Start, code.End})
				isFound = len(dst) > before
				return !isFound
			})
			return isFound, nil
		})
	})
	return dst
}
