// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"math/bits"
	"slices"
)

// This file has the operations that make composite locations (A.2.5.4.4.6). A
// part is only described here; nothing is read.

// opPiece takes the least significant bytes of a register or value, like DW_OP_bit_piece with
// an offset of 0: the ABI decides which bytes (DWARF 5, 2.6.1.2), and ABIs of big-endian
// machines decide so too.
func opPiece(ev *evaluation) error { return ev.bytePiece(ev.inst.Operands[0]) }

func (ev *evaluation) bytePiece(size uint64) error {
	if size > 1<<61-1 {
		return fmt.Errorf("%w: part of %d bytes", ErrLimit, size)
	}
	return ev.addPart(size*8, displacement{})
}

func opBitPiece(ev *evaluation) error {
	return ev.addPart(ev.inst.Operands[0], bitDisplacement(ev.signed(ev.inst.Operands[1]&ev.mask)))
}

// isIncomplete reports whether the entry is an incomplete composite.
func (s *Entry) isIncomplete() bool {
	return s != nil && s.kind == locationEntry && s.location.isIncomplete()
}

// addPart adds a part of n bits to the composite on the stack, or starts one. The
// bits are those at a distance from the location on top.
func (ev *evaluation) addPart(n uint64, distance displacement) error {
	var part Location // undefined when there is nothing on the stack
	if top := ev.top(); top != nil && (!top.takesPieces() || ev.n > 1 && ev.stack[ev.n-2].takesPieces()) {
		var err error
		if part, err = ev.popLocation(); err != nil {
			return err
		}
		whole := part.place
		if err := ev.shiftPart(&part, n, distance); err != nil {
			return err
		}
		part.place.narrow, part.place.keeps = 0, 0
		if whole.narrow == NarrowConverted { // all of the register is needed to read a number
			part.place.narrow, part.place.keeps = whole.narrow, whole.keeps
		}
		if err := ev.checkPart(&part, n); err != nil {
			return err
		}
	}
	top := ev.top()
	if !top.takesPieces() {
		l := Location{place: Place{Storage: Composite, Scope: ev.context.Scope(), detail: &detail{isIncomplete: true, depth: 1}}}
		if err := ev.pushLocation(&l); err != nil {
			return err
		}
		top = ev.top()
	}
	// No stack operation copies an incomplete composite, so this entry is the only one that
	// has it.
	d := top.location.place.detail
	if d.isOpen {
		d = d.extend()
	}
	if err := ev.countParts(d, 1, n, part.NumPlaces(), part.depth()); err != nil {
		return err
	}
	d.parts = append(d.parts, Part{Bits: n, Location: part})
	top.location.place.detail = d
	return nil
}

// shiftPart moves l to where n bits at a distance from it are: "as if
// DW_OP_constu B; DW_OP_LLVM_bit_offset were applied" (A.2.5.4.4.6). In registers
// and values that distance counts from the least significant bit (DWARF 5,
// 2.6.1.2), which is the last one of the storage on a big-endian machine. There it
// counts so from the start of the storage only: an offset that other operations
// have given to a location is in the order of its storage.
func (ev *evaluation) shiftPart(l *Location, n uint64, distance displacement) error {
	if ev.dec.Order == LittleEndian || n == 0 {
		return l.shift(distance, ev.context, ev.bits)
	}
	l.more = slices.Clone(l.more) // other locations may share it
	for i := range l.NumPlaces() {
		p := &l.place
		if i > 0 {
			p = &l.more[i-1]
		}
		if !ev.fromLeastSignificant(p, n, distance) {
			if err := p.move(distance, ev.context, ev.bits); err != nil {
				return err
			}
		}
	}
	return nil
}

// fromLeastSignificant moves p to the n bits that begin at a distance from its last bit. It
// is false where p is not the start of a register or value that has as many.
func (ev *evaluation) fromLeastSignificant(p *Place, n uint64, distance displacement) bool {
	size := uint64(p.keeps)
	switch p.Storage {
	case Memory:
	case Register, Implicit, ImplicitPointer:
		if p.narrow == NarrowHigh {
			size = 0
		} else if all, known := p.storageSize(ev.context, ev.bits); known && p.BitOffset == 0 {
			size = all.bits
		}
	default:
		return false
	}
	if n > size || distance.bytes < 0 || distance.bytes >= 1<<60 {
		return false
	}
	bits := uint64(distance.bytes)*8 + uint64(distance.bits)
	return bits <= size-n && p.move(bitDisplacement(int64(size-n-bits)), ev.context, ev.bits) == nil
}

// SpaceContext knows all address spaces of its architecture, which bound the
// size of composites (A.2.5.4.4.6).
type SpaceContext interface {
	// LargestSpaceBits returns the address size of the largest one.
	LargestSpaceBits() uint32
}

// countParts adds count parts of n bits, each in so many places and with
// composites that nest depth deep, to the counts of d.
func (ev *evaluation) countParts(d *detail, count, n uint64, places, depth int) error {
	limit := ev.settings.Limits.parts()
	switch {
	case count > uint64((limit-ev.parts)/places):
		return fmt.Errorf("%w: more than %d parts of composite locations", ErrLimit, limit)
	case count > uint64(ev.e.parts/places):
		return fmt.Errorf("%w: more than %d parts of composite locations in evaluations within each other", ErrLimit, partsInAll*limit)
	}
	cost := int(count) * places
	ev.parts += cost
	ev.e.parts -= cost
	high, low := bits.Mul64(count, n)
	size, carry := bits.Add64(d.bits, low, 0)
	if high != 0 || carry != 0 {
		return fmt.Errorf("%w: composite location of 2^64 bits and more", ErrLimit)
	}
	if c, ok := ev.context.(SpaceContext); ok {
		if space := c.LargestSpaceBits(); space < 61 && size > 8<<space {
			return illFormedf("composite location of %d bits, the largest address space has %d", size, uint64(8)<<space)
		}
	}
	d.bits = size
	if d.depth = max(d.depth, depth+1); d.depth > ev.settings.Limits.nesting() {
		return fmt.Errorf("%w: composite locations nested deeper than %d", ErrLimit, ev.settings.Limits.nesting())
	}
	return nil
}

// checkPart checks that n bits from the offset of every place lie in its storage.
func (ev *evaluation) checkPart(l *Location, n uint64) error {
	if n == 0 {
		return nil
	}
	if n > endless {
		return fmt.Errorf("%w: part of %d bits", ErrLimit, n)
	}
	for i := range l.NumPlaces() {
		p := &l.place
		if i > 0 {
			p = &l.more[i-1]
		}
		if left, known := p.left(ev.context, ev.bits); known && n > left {
			return illFormed{fmt.Errorf("%w: part of %d bits of %v", ErrOutOfBounds, n, l.brief())}
		}
	}
	return nil
}

// endless is the largest size of a composite in bits. Memory of 64-bit addresses has more,
// but no operation reaches the bits beyond.
const endless = ^uint64(0) - 15

// left returns how many bits there are from the offset of p on in its storage,
// endless where there are more. known is false where the size of the storage is
// not known.
func (p *Place) left(m Machine, addressBits uint32) (n uint64, known bool) {
	if p.Storage == Undefined {
		return endless, true
	}
	size, known := p.storageSize(m, addressBits)
	switch {
	case !known:
		return endless, false
	case !size.isMemory && p.BitOffset > size.bits:
		return 0, true
	case !size.isMemory:
		return size.bits - p.BitOffset, true
	}
	address, carry := bits.Add64(p.Address, p.BitOffset/8, 0)
	switch {
	case carry != 0 || address > size.last:
		return 0, true
	case size.last-address >= endless/8:
		return endless, true
	}
	return (size.last-address+1)*8 - p.BitOffset%8, true
}

// remaining returns rbss(L), the fewest bits that are left in the storage of a
// place of l.
func (ev *evaluation) remaining(l *Location) (uint64, error) {
	least := endless
	for i := range l.NumPlaces() {
		p := l.Place(i)
		n, known := p.left(ev.context, ev.bits)
		if !known {
			return 0, fmt.Errorf("the size of %v is not known", l.brief())
		}
		least = min(least, n)
	}
	return least, nil
}

func opPieceEnd(ev *evaluation) error {
	if err := ev.need(1); err != nil {
		return err
	}
	top := ev.top()
	if !top.isIncomplete() {
		return illFormedf("an incomplete composite location is needed, found %s", top.text(maxBriefText))
	}
	top.location.place.detail.isIncomplete = false
	return nil
}

// newComposite starts a complete composite of count parts of n bits, as countParts
// has them.
func (ev *evaluation) newComposite(count, n uint64, places, depth int) (*detail, error) {
	if count == 0 || n == 0 {
		return nil, illFormedf("%d parts of %d bits", count, n)
	}
	d := &detail{depth: 1, each: n}
	if err := ev.countParts(d, count, n, places, depth); err != nil {
		return nil, err
	}
	d.parts = make([]Part, count)
	return d, nil
}

func (ev *evaluation) pushComposite(d *detail) error {
	return ev.pushLocation(&Location{place: Place{Storage: Composite, Scope: ev.context.Scope(), detail: d}})
}

func opExtend(ev *evaluation) error {
	l, err := ev.popLocation()
	if err != nil {
		return err
	}
	d, err := ev.newComposite(ev.inst.Operands[1], ev.inst.Operands[0], l.NumPlaces(), l.depth())
	if err != nil {
		return err
	}
	if err := ev.checkPart(&l, ev.inst.Operands[0]); err != nil {
		return err
	}
	for i := range d.parts {
		d.parts[i] = Part{Bits: ev.inst.Operands[0], Location: l}
	}
	return ev.pushComposite(d)
}

func opSelectBitPiece(ev *evaluation) error {
	size, count := ev.inst.Operands[0], ev.inst.Operands[1]
	mask, err := ev.popIntegral()
	if err != nil {
		return err
	}
	var sources [2]Location
	for _, i := range []int{1, 0} {
		if sources[i], err = ev.popLocation(); err != nil {
			return err
		}
	}
	if count > uint64(mask.size) {
		return illFormedf("%d parts are selected by a mask of %d bits", count, mask.size)
	}
	d, err := ev.newComposite(count, size, max(sources[0].NumPlaces(), sources[1].NumPlaces()), max(sources[0].depth(), sources[1].depth()))
	if err != nil {
		return err
	}
	// newComposite found all parts together to have below 2^64 bits.
	for i := range d.parts {
		which := 0
		if mask.isSet(uint64(i)) {
			which = 1
		}
		part := &d.parts[i]
		part.Bits, part.Location = size, sources[which]
		offset := uint64(i) * size
		if err := part.Location.shift(displacement{bytes: int64(offset / 8), bits: uint8(offset % 8)}, ev.context, ev.bits); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		if err := ev.checkPart(&part.Location, size); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return ev.pushComposite(d)
}

func opOverlay(ev *evaluation) error    { return ev.overlay(8) }
func opBitOverlay(ev *evaluation) error { return ev.overlay(1) }

// overlay pops a size and an offset, in units of so many bits, the overlay and
// the base, and pushes the base with the overlay on it.
func (ev *evaluation) overlay(unit uint64) error {
	size, err := ev.popExtent(unit, "size")
	if err != nil {
		return err
	}
	offset, err := ev.popExtent(unit, "offset")
	if err != nil {
		return err
	}
	over, err := ev.popLocation()
	if err != nil {
		return err
	}
	base, err := ev.popLocation()
	if err != nil {
		return err
	}
	all, err := ev.remaining(&base)
	if err != nil {
		return err
	}
	if size > all || offset > all-size {
		return illFormed{fmt.Errorf("%w: overlay of %d bits from bit %d on, the base has %d", ErrOutOfBounds, size, offset, all)}
	}
	switch {
	case size == 0:
		return ev.pushLocation(&base)
	case offset == 0 && size == all:
		return ev.pushLocation(&over)
	}
	// On a big-endian machine DW_OP_bit_piece would take the parts of a register
	// from its other end. "The base location with the overlay positioned as an
	// overlay" has them in the order of its storage.
	d := &detail{depth: 1}
	for _, part := range []struct {
		l           *Location
		bits, shift uint64
	}{{&base, offset, 0}, {&over, size, 0}, {&base, all - size - offset, offset + size}} {
		if part.bits == 0 {
			continue
		}
		l := *part.l
		if part.shift != 0 {
			if err := l.shift(displacement{bytes: int64(part.shift / 8), bits: uint8(part.shift % 8)}, ev.context, ev.bits); err != nil {
				return err
			}
		}
		if err := ev.checkPart(&l, part.bits); err != nil {
			return err
		}
		if err := ev.countParts(d, 1, part.bits, l.NumPlaces(), l.depth()); err != nil {
			return err
		}
		d.parts = append(d.parts, Part{Bits: part.bits, Location: l})
	}
	return ev.pushComposite(d)
}

// popExtent pops a number of units that must not be negative, and returns it in
// bits.
func (ev *evaluation) popExtent(unit uint64, what string) (uint64, error) {
	i, err := ev.popIntegral()
	if err != nil {
		return 0, err
	}
	v, fits := i.uint64()
	if i.isGeneric {
		signed, _ := i.int64()
		fits = signed >= 0
	}
	if i.isNegative || i.isGeneric && !fits {
		return 0, illFormedf("the %s of the overlay is negative", what)
	}
	high, n := bits.Mul64(v, unit)
	if !fits || high != 0 || n > endless {
		return 0, illFormed{fmt.Errorf("%w: the %s of the overlay exceeds every storage", ErrOutOfBounds, what)}
	}
	return n, nil
}
