// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"fmt"
)

// This file has the operations that make implicit locations, and the rules of
// implicit pointers (A.2.5.4.4.5).

func opImplicitValue(ev *evaluation) error {
	if err := ev.charge(len(ev.inst.Block) / implicitBytesPerStep); err != nil {
		return err
	}
	l := ImplicitLocation(ev.inst.Block)
	l.place.Scope = ev.context.Scope()
	return ev.pushLocation(&l)
}

func opStackValue(ev *evaluation) error {
	if err := ev.need(1); err != nil {
		return err
	}
	s := ev.top()
	if s.kind > addressEntry {
		if s.kind == valueEntry && s.value.implicitPointer() != nil {
			l := *s.value.implicitPointer()
			ev.n--
			return ev.pushLocation(&l)
		}
		if err := ev.toValue(s); err != nil {
			return err
		}
	}
	var l Location
	if s.kind == valueEntry {
		if err := ev.charge(int(s.value.Bits() / 8 / implicitBytesPerStep)); err != nil {
			return err
		}
		l = implicitOf(&s.value, ev.dec.Order)
	} else {
		l = ImplicitUint64(s.value.word, ev.bits, ev.dec.Order)
	}
	ev.n--
	l.place.Scope = ev.context.Scope()
	if size, _ := l.place.StorageBits(); ev.dec.Order == BigEndian && (s.kind != valueEntry || s.value.Elements() == 0) {
		l.place.keeps = uint32(size)
	}
	return ev.pushLocation(&l)
}

// implicitOf returns an implicit location with a value.
func implicitOf(v *Value, order ByteOrder) Location {
	p := Place{Storage: Implicit, Scope: noScope}
	n := v.Bits()
	if n <= 64 {
		var buffer [8]byte
		stream := v.appendStream(buffer[:0], order)
		p.small = uint8(n)
		p.Address = loadUint(stream, LittleEndian)
	} else {
		p.detail = &detail{bytes: v.appendStream(nil, order), bits: n}
	}
	return Location{place: p}
}

func opImplicitPointer(ev *evaluation) error { return ev.pushImplicitPointer(DefaultSpace) }

func opAspaceImplicitPointer(ev *evaluation) error {
	space, err := ev.popSpace()
	if err != nil {
		return err
	}
	return ev.pushImplicitPointer(space)
}

func (ev *evaluation) pushImplicitPointer(space AddressSpace) error {
	size, err := ev.spaceBits(space)
	if err != nil {
		return err
	}
	d := &detail{bits: uint64(size), entry: ev.inst.Operands[0], offset: int64(ev.inst.Operands[1])}
	l := implicitPointerLocation(d, space, ev.context.Scope())
	return ev.pushLocation(&l)
}

// pointerValue returns the value of an implicit pointer. Its type is the
// generic one in the default address space, and an integral type of the size of
// an address in another.
func (ev *evaluation) pointerValue(p *Location, n uint32) Value {
	v := Value{bits: n, more: &extra{pointer: p}}
	if p.place.Space != DefaultSpace {
		v.typ = &BaseType{Encoding: EncodingUnsigned, Bits: n}
	}
	return v
}

// implicitPointerAt returns the implicit pointer whose complete contents are the n bits at l,
// nil when none of them is part of an implicit pointer. A mixture is an error.
func (ev *evaluation) implicitPointerAt(l *Location, n uint32) (*Location, error) {
	find := pointerFinder{access: access{steps: ev.e.visits}}
	if n > 0 {
		err := find.location(l, 0, 0, uint64(n))
		ev.e.visits = find.steps
		if err != nil {
			return nil, err
		}
	}
	if find.pointer.Storage != ImplicitPointer {
		return nil, nil
	}
	if find.hasOther || find.covered != find.pointer.detail.bits || find.covered != uint64(n) {
		return nil, fmt.Errorf("%w: %d bits that are not exactly the pointer are read", ErrImplicitPointer, n)
	}
	whole := Location{place: find.pointer}
	whole.place.BitOffset = 0
	return &whole, nil
}

// pointerFinder examines the bits that a read would take.
type pointerFinder struct {
	access
	pointer  Place  // the first implicit pointer met
	covered  uint64 // bits of it so far, ascending from 0
	hasOther bool   // bits of something else, or of the pointer out of order
}

func (f *pointerFinder) location(l *Location, skip, done, n uint64) error {
	// Every place has the same value, so the first one is as good as any.
	p := &l.place
	if err := f.step(); err != nil {
		return err
	}
	switch p.Storage {
	case ImplicitPointer:
		start, err := p.span(skip, n)
		if err != nil {
			return err
		}
		if f.pointer.Storage != ImplicitPointer {
			f.pointer = *p
			f.hasOther = f.hasOther || done != 0
		}
		same := f.pointer.Space == p.Space && f.pointer.detail.entry == p.detail.entry &&
			f.pointer.detail.offset == p.detail.offset && f.pointer.detail.bits == p.detail.bits
		if !same || start != f.covered {
			f.hasOther = true
		}
		f.covered += n
	case Composite:
		start, err := p.span(skip, n)
		if err != nil {
			return err
		}
		w := p.walk(start, n)
		for {
			if more, err := w.next(&f.access); !more {
				return err
			}
			if err := f.location(w.part, w.skip, done+w.done, w.n); err != nil {
				return err
			}
		}
	default:
		f.hasOther = true
	}
	return nil
}

// EntryContext can follow an implicit pointer. It is called only when one is dereferenced.
type EntryContext interface {
	// EntryLocation returns the location of the object that the debugging information entry
	// at an offset of .debug_info describes: the result of its DW_AT_location in this
	// context, or its DW_AT_const_value as an implicit location (A.2.5.4.4.5).
	EntryLocation(ctx context.Context, entry uint64) (Location, error)
}

// pointerTarget returns the location that an implicit pointer points to.
func (ev *evaluation) pointerTarget(p *Location) (Location, error) {
	c, ok := ev.context.(EntryContext)
	if !ok {
		return Location{}, noContext(unitElement)
	}
	entry, displace, _ := p.place.ImplicitPointer()
	l, err := c.EntryLocation(ev.ctx, entry)
	if err != nil {
		return Location{}, err
	}
	err = l.shift(displacement{bytes: displace}, ev.context, ev.bits)
	return l, err
}
