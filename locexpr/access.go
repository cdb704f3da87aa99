// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// maxAccessSteps bounds the parts and places that one read or write visits. Composites may
// share parts, so that their tree is larger than its memory.
const maxAccessSteps = 1 << 22

// byteCount returns how many bytes hold a stream of n bits.
func byteCount(n uint64) uint64 { return n/8 + (n%8+7)/8 }

// Read reads bits of the value at l into the first (bits+7)/8 bytes of dst, as the package
// comment numbers them. A value in more than one place is read from the first place that can
// be read (A.2.5.3).
//
// The error wraps ErrUndefined where a bit comes from undefined storage, ErrOutOfBounds where
// one lies past the end of its storage, and ErrImplicitPointer where one comes from an
// implicit pointer.
func (l Location) Read(ctx context.Context, m Machine, dst []byte, bits uint64) error {
	a := access{ctx: ctx, m: m, order: m.ByteOrder()}
	return a.readAll(&l, dst, bits)
}

// readAll is Location.Read.
func (a *access) readAll(l *Location, dst []byte, bits uint64) error {
	if bits == 0 {
		return nil
	}
	n := byteCount(bits)
	if uint64(len(dst)) < n {
		return fmt.Errorf("buffer of %d bytes for %d bits", len(dst), bits)
	}
	if err := a.read(l, 0, dst[:n], 0, bits); err != nil {
		return err
	}
	clearPadding(dst, bits, a.order)
	return nil
}

// Write writes the first bits of src to every place of l (A.2.5.3). Nothing is written when
// any bit is in storage that cannot be written, or outside its storage; when the machine
// fails, part of it may be.
func (l Location) Write(ctx context.Context, m WritableMachine, src []byte, bits uint64) error {
	if bits == 0 {
		return nil
	}
	if n := byteCount(bits); uint64(len(src)) < n {
		return fmt.Errorf("buffer of %d bytes for %d bits", len(src), bits)
	}
	a := access{ctx: ctx, m: m, w: m, order: m.ByteOrder()}
	if err := a.write(&l, 0, src, 0, bits, false); err != nil {
		return err
	}
	a.steps = 0
	return a.write(&l, 0, src, 0, bits, true)
}

// readUint reads n bits, at most 64, as an unsigned integer. scratch has 8
// bytes.
func (a *access) readUint(l *Location, n uint32, scratch []byte) (uint64, error) {
	clear(scratch)
	if err := a.readAll(l, scratch, uint64(n)); err != nil {
		return 0, err
	}
	return unpackStream(binary.LittleEndian.Uint64(scratch), n, a.order), nil
}

// checkMemory checks that n bytes at address lie in an address space.
func checkMemory(m Machine, space AddressSpace, address, n uint64) error {
	size, ok := m.SpaceBits(space)
	if !ok {
		if space != DefaultSpace {
			return fmt.Errorf("%w: no address space %d", ErrNoContext, space)
		}
		size = 64
	}
	if last := lowMask(size); address > last || n-1 > last-address {
		return fmt.Errorf("%w: %d bytes at 0x%x of an address space of %d bits", ErrOutOfBounds, n, address, size)
	}
	return nil
}

// access is one read or write.
type access struct {
	ctx   context.Context
	m     Machine
	w     WritableMachine // m, of a write
	order ByteOrder
	steps int
}

func (a *access) step() error {
	if a.steps++; a.steps > maxAccessSteps {
		return fmt.Errorf("%w: more than %d parts in one access", ErrLimit, maxAccessSteps)
	}
	return nil
}

// read reads n bits, more than 0, from bit skip of l to bit first of dst.
func (a *access) read(l *Location, skip uint64, dst []byte, first, n uint64) error {
	err := a.readPlace(&l.place, skip, dst, first, n)
	if err == nil {
		return nil
	}
	for i := range l.more {
		if a.readPlace(&l.more[i], skip, dst, first, n) == nil {
			return nil
		}
	}
	return err
}

// span adds skip to the offset of p and checks that n bits from there on lie in
// its storage, where p knows how large that is.
func (p *Place) span(skip, n uint64) (start uint64, err error) {
	if p.depth() > maxNesting {
		return 0, fmt.Errorf("%w: composites nested deeper than %d", ErrLimit, maxNesting)
	}
	start, carry := bits.Add64(p.BitOffset, skip, 0)
	size, known := p.StorageBits()
	if carry != 0 || known && (start > size || n > size-start) {
		return 0, fmt.Errorf("%w: %d bits from bit %d of %v storage of %d bits", ErrOutOfBounds, n, start, p.Storage, size)
	}
	return start, nil
}

// memorySpan returns the bytes that n bits from bit skip of a Memory place on
// touch, and the bit of the first byte that they start at.
func (a *access) memorySpan(p *Place, skip, n uint64) (address, bit, count uint64, err error) {
	bit = p.BitOffset%8 + skip%8
	address, carry := bits.Add64(p.Address, p.BitOffset/8, 0)
	address, carry2 := bits.Add64(address, skip/8, bit/8)
	bit %= 8
	count = byteCount(bit + n)
	if carry != 0 || carry2 != 0 {
		return 0, 0, 0, fmt.Errorf("%w: past the end of the address space", ErrOutOfBounds)
	}
	return address, bit, count, checkMemory(a.m, p.Space, address, count)
}

// registerSpan is span for a Register place.
func (a *access) registerSpan(p *Place, skip, n uint64) (start uint64, err error) {
	size, ok := a.m.RegisterBits(p.Register)
	if !ok {
		return 0, fmt.Errorf("%w: no register %d", ErrNoContext, p.Register)
	}
	start, carry := bits.Add64(p.BitOffset, skip, 0)
	if carry != 0 || start > uint64(size) || n > uint64(size)-start {
		return 0, fmt.Errorf("%w: %d bits from bit %d of register %d of %d bits", ErrOutOfBounds, n, start, p.Register, size)
	}
	return start, nil
}

func (a *access) readPlace(p *Place, skip uint64, dst []byte, first, n uint64) error {
	if err := a.step(); err != nil {
		return err
	}
	switch p.Storage {
	case Memory:
		return a.readMemory(p, skip, dst, first, n)
	case Register:
		return a.readRegister(p, skip, dst, first, n)
	case Implicit:
		start, err := p.span(skip, n)
		if err != nil {
			return err
		}
		if p.detail != nil {
			copyBits(dst, first, p.detail.bytes, start, n, a.order)
			return nil
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], p.Address)
		copyBits(dst, first, word[:], start, n, a.order)
		return nil
	case ImplicitPointer:
		return ErrImplicitPointer
	case Composite:
		start, err := p.span(skip, n)
		if err != nil {
			return err
		}
		w := p.walk(start, n)
		for {
			if more, err := w.next(a); !more {
				return err
			}
			if err := a.read(w.part, w.skip, dst, first+w.done, w.n); err != nil {
				return err
			}
		}
	}
	return ErrUndefined
}

// readMemory is readPlace for a Memory place.
func (a *access) readMemory(p *Place, skip uint64, dst []byte, first, n uint64) error {
	address, bit, count, err := a.memorySpan(p, skip, n)
	if err != nil {
		return err
	}
	if bit == 0 && first%8 == 0 {
		target := dst[first/8 : first/8+count]
		if err := a.m.ReadMemory(a.ctx, p.Space, p.Scope, address, target); err != nil {
			return err
		}
		clearPadding(target, n, a.order)
		return nil
	}
	whole := make([]byte, count)
	if err := a.m.ReadMemory(a.ctx, p.Space, p.Scope, address, whole); err != nil {
		return err
	}
	copyBits(dst, first, whole, bit, n, a.order)
	return nil
}

// readRegister is readPlace for a Register place.
func (a *access) readRegister(p *Place, skip uint64, dst []byte, first, n uint64) error {
	start, err := a.registerSpan(p, skip, n)
	if err != nil {
		return err
	}
	if first%8 == 0 {
		target := dst[first/8 : first/8+byteCount(n)]
		if err := a.m.ReadRegister(a.ctx, p.Register, p.Scope, target, start, n); err != nil {
			return err
		}
		clearPadding(target, n, a.order)
		return nil
	}
	value := make([]byte, byteCount(n))
	if err := a.m.ReadRegister(a.ctx, p.Register, p.Scope, value, start, n); err != nil {
		return err
	}
	copyBits(dst, first, value, 0, n, a.order)
	return nil
}

// partWalk goes through the parts of a composite that hold a range of bits.
type partWalk struct {
	parts []Part // the part that follows, and the ones behind it
	start uint64 // bits to skip from parts[0] on
	left  uint64 // bits still to come

	// The current part, set by next.
	part *Location
	skip uint64 // bits of the part before those that are wanted
	done uint64 // bits that earlier parts had
	n    uint64 // bits that the part has
}

// walk starts at the n bits from bit start of a composite. Composites with a part for each
// lane are read lane by lane, so parts of one size before start are not visited.
func (p *Place) walk(start, n uint64) partWalk {
	parts := p.detail.parts
	if each := p.detail.each; each > 0 {
		before := min(start/each, uint64(len(parts)))
		parts, start = parts[before:], start-before*each
	}
	return partWalk{parts: parts, start: start, left: n}
}

// next goes to the next part; false at the end.
func (w *partWalk) next(a *access) (bool, error) {
	w.done += w.n
	w.n = 0
	for w.left > 0 && len(w.parts) > 0 {
		if err := a.step(); err != nil {
			return false, err
		}
		p := &w.parts[0]
		w.parts = w.parts[1:]
		if w.start >= p.Bits {
			w.start -= p.Bits
			continue
		}
		w.part, w.skip, w.n = &p.Location, w.start, min(w.left, p.Bits-w.start)
		w.start = 0
		w.left -= w.n
		return true, nil
	}
	return false, nil
}

// write writes n bits, more than 0, from bit first of src to bit skip of every place of l.
// Without commit it only checks that it could.
func (a *access) write(l *Location, skip uint64, src []byte, first, n uint64, commit bool) error {
	if err := a.writePlace(&l.place, skip, src, first, n, commit); err != nil {
		return err
	}
	for i := range l.more {
		if err := a.writePlace(&l.more[i], skip, src, first, n, commit); err != nil {
			return err
		}
	}
	return nil
}

func (a *access) writePlace(p *Place, skip uint64, src []byte, first, n uint64, commit bool) error {
	if err := a.step(); err != nil {
		return err
	}
	switch p.Storage {
	case Memory:
		address, bit, count, err := a.memorySpan(p, skip, n)
		if err != nil || !commit {
			return err
		}
		if bit == 0 && first%8 == 0 && n%8 == 0 {
			return a.w.WriteMemory(a.ctx, p.Space, p.Scope, address, src[first/8:first/8+count])
		}
		// The bits around a bit field keep their values.
		whole := make([]byte, count)
		if err := a.m.ReadMemory(a.ctx, p.Space, p.Scope, address, whole); err != nil {
			return err
		}
		copyBits(whole, bit, src, first, n, a.order)
		return a.w.WriteMemory(a.ctx, p.Space, p.Scope, address, whole)
	case Register:
		start, err := a.registerSpan(p, skip, n)
		if err != nil || !commit {
			return err
		}
		if first%8 == 0 && n%8 == 0 {
			return a.w.WriteRegister(a.ctx, p.Register, p.Scope, src[first/8:first/8+n/8], start, n)
		}
		value := make([]byte, byteCount(n))
		copyBits(value, 0, src, first, n, a.order)
		return a.w.WriteRegister(a.ctx, p.Register, p.Scope, value, start, n)
	case Implicit, ImplicitPointer:
		return ErrReadOnly
	case Composite:
		start, err := p.span(skip, n)
		if err != nil {
			return err
		}
		w := p.walk(start, n)
		for {
			if more, err := w.next(a); !more {
				return err
			}
			if err := a.write(w.part, w.skip, src, first+w.done, w.n, commit); err != nil {
				return err
			}
		}
	}
	return ErrUndefined
}
