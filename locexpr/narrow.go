// SPDX-License-Identifier: Apache-2.0

package locexpr

// This file has the places of objects that are smaller than their register or value. DWARF
// leaves them to the ABI (DWARF 5, 2.6.1.1.3 and 2.6.1.2).

// Narrow is the place in a register of objects that are smaller than it.
type Narrow uint8

// The places of smaller objects in registers.
const (
	// NarrowLow: in the low-order end, which on a big-endian machine is not the start.
	NarrowLow Narrow = iota
	// NarrowHigh: in the high-order end on a big-endian machine, as numbers of 32 bits are
	// in the floating point registers of s390x.
	NarrowHigh
	// NarrowConverted: as NarrowLow, but floating point numbers are in the format that
	// numbers of the register's size have, as on POWER and in the registers of x87.
	NarrowConverted
)

// RegisterContext knows the places of smaller objects in its registers. Without it all are
// NarrowLow.
type RegisterContext interface {
	// NarrowIn returns the place of objects in the register that are smaller than it.
	NarrowIn(reg uint64) Narrow
}

// keepRegister records in the places of l that they are the whole register.
func (ev *evaluation) keepRegister(l *Location, reg uint64) {
	narrow := NarrowLow
	if c, ok := ev.context.(RegisterContext); ok {
		narrow = c.NarrowIn(reg)
	}
	if narrow != NarrowConverted && ev.dec.Order == LittleEndian {
		return
	}
	size, ok := ev.context.RegisterBits(reg)
	if !ok || len(l.more) != 0 || l.place.BitOffset != 0 {
		return
	}
	if known, ok := l.place.StorageBits(); ok && known < uint64(size) {
		size = uint32(known)
	}
	l.place.narrow, l.place.keeps = narrow, size
}

// Object returns the location of an object of so many bits whose expression results in l: l
// itself, unless l is a register, a place where one was saved, or a value that was computed,
// and has more bits. Parts of the object are counted from there.
func (l Location) Object(bits uint64, order ByteOrder) Location {
	size, narrow := uint64(l.place.keeps), l.place.narrow
	l.place.keeps, l.place.narrow = 0, 0
	if order != BigEndian || narrow == NarrowHigh || bits == 0 || bits >= size {
		return l
	}
	moved := l
	if err := moved.shift(bitDisplacement(int64(size-bits)), nil, 64); err != nil {
		return l
	}
	return moved
}

// ConvertedBits returns the size of the register that l is, or was saved from, where
// floating point numbers in it are in its own format; else 0.
func (l Location) ConvertedBits() uint32 {
	if l.place.narrow != NarrowConverted {
		return 0
	}
	return l.place.keeps
}
