// SPDX-License-Identifier: Apache-2.0

package locexpr

import "bytes"

// Equal reports whether l and o have equal places in the same order: equal
// storage, offset and scope, and for composites equal parts.
func (l Location) Equal(o Location) bool {
	var c comparison
	return c.equalLocations(&l, &o)
}

// Equal reports whether p and o are the same place: equal storage, offset and
// scope, and for composites equal parts. Implicit places are equal when their
// storages have the same bits.
func (p Place) Equal(o Place) bool {
	var c comparison
	return c.equalPlaces(&p, &o)
}

// comparison compares locations. Composites may share parts, so that written out they are
// exponentially larger than in memory: parts that were found to be equal are not compared
// again.
type comparison struct {
	// known leads from a part to one that is equal to it, the same for all that are equal to
	// each other.
	known map[*detail]*detail
	depth int
}

func (c *comparison) equalLocations(l, o *Location) bool {
	if len(l.more) != len(o.more) || !c.equalPlaces(&l.place, &o.place) {
		return false
	}
	for i := range l.more {
		if !c.equalPlaces(&l.more[i], &o.more[i]) {
			return false
		}
	}
	return true
}

func (c *comparison) equalPlaces(p, o *Place) bool {
	a, b := *p, *o
	a.detail, b.detail = nil, nil
	return a == b && c.equalDetails(p.detail, o.detail)
}

// knownBytes is how many bytes are compared again rather than remembered.
const knownBytes = 64

func (c *comparison) equalDetails(a, b *detail) bool {
	switch {
	case a == b:
		return true
	case a == nil || b == nil:
		return false
	case a.bits != b.bits || a.isIncomplete != b.isIncomplete || a.entry != b.entry || a.offset != b.offset ||
		len(a.bytes) != len(b.bytes) || len(a.parts) != len(b.parts):
		return false
	}
	if c.depth > 0 && (a.depth > 0 || len(a.bytes) > knownBytes) {
		a, b = c.find(a), c.find(b)
		if a == b {
			return true
		}
		if c.known == nil {
			c.known = map[*detail]*detail{}
		}
		c.known[a] = b // if they are not, nothing else is compared
	}
	if !bytes.Equal(a.bytes, b.bytes) {
		return false
	}
	c.depth++
	defer func() { c.depth-- }()
	for i := range a.parts {
		if a.parts[i].Bits != b.parts[i].Bits || !c.equalLocations(&a.parts[i].Location, &b.parts[i].Location) {
			return false
		}
	}
	return true
}

// find returns the representative of all parts that are known to equal d.
func (c *comparison) find(d *detail) *detail {
	for {
		next, ok := c.known[d]
		if !ok {
			return d
		}
		if further, ok := c.known[next]; ok {
			c.known[d] = further
		}
		d = next
	}
}
