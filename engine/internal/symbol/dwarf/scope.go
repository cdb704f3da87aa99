// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"iter"
	"slices"

	"github.com/unwindd/unwindd/internal/dw"
)

// Scope is a function, a call that was inlined, or a block of one.
type Scope struct{ Entry }

// Scopes are the blocks, inlined calls and the function at an address of the object, the
// innermost first and the function last. There are none where no function is known.
func (r *Reader) Scopes(address uint64) (scopes []Scope, err error) {
	err = r.protect(func() error {
		b, f, err := r.describing(address)
		if err != nil || f == nil {
			return err
		}
		scopes, err = r.scopesIn(b, f, address)
		return err
	})
	return scopes, err
}

// describing finds the function at an address, and the unit that describes it.
func (r *Reader) describing(address uint64) (holder *body, found *function, err error) {
	if r.generated != nil {
		return r.generatedFunctionAt(address)
	}
	err = r.maps(address, func(m *unitMap) (isFound bool, err error) {
		m.candidates(address, maxCandidates, func(u *unit) bool {
			b, e := u.open()
			if e == nil {
				holder, found, e = r.functionAt(b, address)
			}
			if e != nil {
				err = e
			}
			return found == nil
		})
		return found != nil, err
	})
	if found == nil {
		return nil, nil, err
	}
	return holder, found, nil
}

// scopesIn descends from a function to the innermost inlined call at an address, then
// through the blocks that contain the address.
func (r *Reader) scopesIn(b *body, f *function, address uint64) ([]Scope, error) {
	x, innermost, err := b.callsAt(f, address)
	if err != nil {
		return nil, err
	}
	entry := b.offset + uint64(f.offset)
	target := entry
	if innermost >= 0 {
		target = b.offset + uint64(x.list[innermost].offset)
	}
	e, err := b.entryAt(entry)
	if err != nil {
		return nil, err
	}
	scopes := []Scope{{e}}
	for len(scopes) <= maxDepth {
		next, err := inner(e, address, target)
		if err != nil {
			return nil, err
		}
		if next.IsZero() {
			break
		}
		e = next
		scopes = append(scopes, Scope{e})
	}
	slices.Reverse(scopes)
	return scopes, nil
}

// inner returns the scope directly inside e that leads to the entry at the offset target.
// If e is that entry or comes after it, inner returns the block in e that contains an
// address.
func inner(e Entry, address, target uint64) (Entry, error) {
	var last Entry // the last scope that begins at or before target
	for c, err := range e.Children() {
		if err != nil {
			return Entry{}, err
		}
		if e.off < target {
			if c.off > target {
				break
			}
			if c.Tag() == dw.TagLexicalBlock || c.Tag() == dw.TagInlinedSubroutine {
				last = c
			}
			continue
		}
		if c.Tag() != dw.TagLexicalBlock {
			continue
		}
		covers, err := c.Covers(address)
		if err != nil {
			return Entry{}, err
		}
		if covers {
			return c, nil
		}
	}
	return last, nil
}

// isVariable reports whether an entry describes an available variable, parameter or
// constant.
func (e Entry) isVariable() bool {
	switch e.Tag() {
	case dw.TagVariable, dw.TagFormalParameter, dw.TagConstant:
		n, ok, err := e.Number(dw.AttrDeclaration)
		return err == nil && (!ok || n == 0)
	}
	return false
}

// maxInherited bounds the entries of an abstract instance that are visited.
const maxInherited = 1 << 16

// Variables are the variables, parameters and constants of the scope itself, without its
// inner blocks. Variables of the abstract instance alone (DWARF 5, 3.3.8.2: they are optimized
// out, or the same in every instance) come last.
func (s Scope) Variables() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		v, isInstance, err := s.own(dw.AttrAbstractOrigin)
		if err != nil {
			isInstance = false
		}
		seen := make(map[entryKey]bool)
		budget := maxInherited
		for c, err := range s.Children() {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if isInstance {
				c.instances(seen, &budget, 0)
			}
			if c.isVariable() && !yield(c, nil) {
				return
			}
		}
		if !isInstance {
			return
		}
		origin, err := s.b.follow(&v)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		origin.inherited(seen, &budget, 0, yield)
	}
}

// instances adds the entry of an abstract instance that e is a concrete instance of. clang,
// and gcc for some blocks, refer to the abstract variables alone, not to the blocks around
// them. Variables of a block that is not at the address are not in scope there.
func (e Entry) instances(seen map[entryKey]bool, budget *int, depth int) {
	if *budget--; *budget < 0 || depth > maxOrigins {
		return
	}
	v, ok, err := e.own(dw.AttrAbstractOrigin)
	if err != nil {
		return
	}
	if ok {
		if u, off, err := e.b.reference(&v); err == nil {
			seen[entryKey{u, off}] = true
		}
		return
	}
	if e.Tag() != dw.TagLexicalBlock {
		return
	}
	for c, err := range e.Children() {
		if err != nil {
			return
		}
		c.instances(seen, budget, depth+1)
	}
}

// inherited yields the variables of an abstract instance without a known concrete instance.
// It enters blocks of the abstract instance that have no concrete instance: their variables
// belong to it.
func (e Entry) inherited(seen map[entryKey]bool, budget *int, depth int, yield func(Entry, error) bool) bool {
	for c, err := range e.Children() {
		if err != nil {
			return yield(Entry{}, err)
		}
		if *budget--; *budget < 0 || depth > maxOrigins {
			return false
		}
		switch {
		case seen[entryKey{c.b.unit, c.off}]:
		case c.isVariable():
			if !yield(c, nil) {
				return false
			}
		case c.Tag() == dw.TagLexicalBlock && !c.abbrev.hasCode:
			if !c.inherited(seen, budget, depth+1, yield) {
				return false
			}
		}
	}
	return true
}
