package locexpr

import (
	"fmt"
	"math/bits"
)

// This file has the operations that make composite locations (A.2.5.4.4.6).

func opPiece(ev *evaluation) error {
	size := ev.in.Operands[0]
	if size > 1<<61-1 {
		return fmt.Errorf("%w: part of %d bytes", ErrLimit, size)
	}
	return ev.piece(size*8, displacement{})
}

func opBitPiece(ev *evaluation) error {
	// "as if DW_OP_constu B; DW_OP_LLVM_bit_offset were applied"
	return ev.piece(ev.in.Operands[0], bitDisplacement(ev.signed(ev.in.Operands[1]&ev.mask)))
}

// piece adds a part of n bits to the incomplete composite on the stack, or
// starts one. A part is only described here; nothing is read.
func (ev *evaluation) piece(n uint64, by displacement) error {
	var part Location // undefined when there is nothing on the stack to describe it
	if top := ev.top(); top != nil && (top.kind != locationEntry || !top.location.isIncomplete()) {
		var err error
		if part, err = ev.popLocation(); err != nil {
			return err
		}
		if ev.in.Op.Operands[1] != NoOperand {
			if err := part.shift(by, ev.ctx, ev.bits); err != nil {
				return err
			}
		}
		if err := ev.checkPart(&part, n); err != nil {
			return err
		}
	}
	if ev.parts++; ev.parts > ev.limits.Parts {
		return fmt.Errorf("%w: more than %d parts of composite locations", ErrLimit, ev.limits.Parts)
	}
	top := ev.top()
	if top == nil || top.kind != locationEntry || !top.location.isIncomplete() {
		l := Location{place: Place{Storage: Composite, Scope: ev.ctx.Scope(), detail: &detail{incomplete: true, depth: 1}}}
		if err := ev.pushLocation(&l); err != nil {
			return err
		}
		top = ev.top()
	}
	// No stack operation copies an incomplete composite, so this entry is the
	// only one that holds it.
	d := top.location.place.detail
	size, carry := bits.Add64(d.bits, n, 0)
	if carry != 0 {
		return fmt.Errorf("%w: composite location of 2^64 bits and more", ErrLimit)
	}
	d.bits = size
	d.depth = max(d.depth, part.depth()+1)
	if d.depth > ev.limits.Nesting {
		return fmt.Errorf("%w: composite locations nested deeper than %d", ErrLimit, ev.limits.Nesting)
	}
	d.parts = append(d.parts, Part{Bits: n, Location: part})
	return nil
}

// checkPart checks that n bits from the offset of every place lie in its
// storage.
func (ev *evaluation) checkPart(l *Location, n uint64) error {
	if n == 0 {
		return nil
	}
	if n > ^uint64(0)-8 {
		return fmt.Errorf("%w: part of %d bits", ErrLimit, n)
	}
	for i := range l.NumPlaces() {
		p := l.Place(i)
		size, known := p.storageSize(ev.ctx, ev.bits)
		if !known || p.Storage == Undefined {
			continue
		}
		var fits bool
		if size.memory {
			last := byteCount(p.BitOffset%8+n) - 1
			fits = p.Address <= size.last && last <= size.last-p.Address
		} else {
			fits = p.BitOffset <= size.bits && n <= size.bits-p.BitOffset
		}
		if !fits {
			return illFormed{fmt.Errorf("%w: part of %d bits of %v", ErrOutOfBounds, n, l.brief())}
		}
	}
	return nil
}
