// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// AddressSpace is an architecture's number for an address space (heterogeneous extension,
// A.2.13). 0 is the default address space.
type AddressSpace uint64

// DefaultSpace is the default address space of every architecture.
const DefaultSpace AddressSpace = 0

// ByteOrder is the order of bytes in memory, registers and values.
type ByteOrder uint8

// The byte orders.
const (
	LittleEndian ByteOrder = iota
	BigEndian
)

// String returns "little-endian" or "big-endian".
func (o ByteOrder) String() string {
	if o == BigEndian {
		return "big-endian"
	}
	return "little-endian"
}

// StorageKind is one of the kinds of location storage (A.2.5.3).
type StorageKind uint8

// The kinds of location storage. The zero value is Undefined, so that a zero Place and a zero
// Location are undefined.
const (
	Undefined       StorageKind = iota // no value is available
	Memory                             // bytes of an address space
	Register                           // a register of a thread
	Implicit                           // a fixed value, read only
	ImplicitPointer                    // a pointer that was optimized away; its target is known
	Composite                          // parts, each a location of its own
)

var storageNames = [...]string{"undefined", "memory", "register", "implicit", "implicit-pointer", "composite"}

// String returns the name of the kind as the output of unwindd spells it.
func (k StorageKind) String() string {
	if int(k) < len(storageNames) {
		return storageNames[k]
	}
	return fmt.Sprintf("storage(%d)", uint8(k))
}

// Scope is the owner of a place's storage: the context elements that were in force when the
// place was made (A.2.5.3: a location description stays bound to the context that created
// it).
type Scope struct {
	Thread uint64 // the target's handle for the thread; meaningless for global memory
	Frame  int32  // 0 is the top frame
	Lane   int32  // -1: no lane was current
}

// Place is a single location description: a storage, and a bit offset from
// the storage's start.
//
// The offset of a Memory place is kept as a byte address and a bit offset below
// 8 within that byte.
type Place struct {
	Storage   StorageKind
	small     uint8        // Implicit without detail: size in bits, at most 64
	narrow    Narrow       // place of an object that is smaller than keeps
	keeps     uint32       // bits of the register or value that the place is the whole of; 0: it is no such place, or smaller objects are at it
	Space     AddressSpace // Memory: the address space
	Address   uint64       // Memory: the byte address that BitOffset counts from. Implicit without detail: the storage's bytes, the first lowest
	Register  uint64       // Register: the DWARF register number
	BitOffset uint64       // bits from the start of the storage
	Scope     Scope
	detail    *detail // Implicit, ImplicitPointer, Composite
}

// detail is the contents of rarer storages. It never changes once its location is complete,
// so places share it.
type detail struct {
	bytes        []byte // Implicit: the value, in the byte order of the architecture
	bits         uint64 // Implicit, ImplicitPointer, Composite: size of the storage
	parts        []Part // Composite
	each         uint64 // Composite: the size of each part in bits, where all are equal; 0: not known
	depth        int    // Composite: the nesting of composites in it, itself included
	isIncomplete bool   // Composite: DW_OP_piece may still add to it (A.2.5.4.4.6)
	isOpen       bool   // Composite: DW_OP_piece makes a longer one of it; see opComposite
	isExtended   bool   // isOpen, and the parts of a longer composite begin with these in the same array
	entry        uint64 // ImplicitPointer: section offset of the debugging information entry
	offset       int64  // ImplicitPointer: byte displacement
}

// Part is a bit range of a composite: Bits bits of Location, in storage order.
type Part struct {
	Bits     uint64
	Location Location
}

// Location is a location description: one or more places that hold the same
// value. The zero Location is the undefined location description.
type Location struct {
	place Place
	more  []Place // the further places; nearly always empty

	// A struct is copied 16 bytes at a time. When its size is no multiple of that, the last
	// two pieces overlap, and a second copy waits for both to reach the cache, which takes
	// longer than all the rest.
	_ [8]byte
}

// noScope is the scope of a place that was made without a context.
var noScope = Scope{Lane: -1}

// MemoryLocation returns the memory at a byte address of an address space. It
// has no thread and no lane; see WithScope.
func MemoryLocation(space AddressSpace, address uint64) Location {
	return Location{place: Place{Storage: Memory, Space: space, Address: address, Scope: noScope}}
}

// RegisterLocation returns the register with a DWARF number, whole.
func RegisterLocation(reg uint64, scope Scope) Location {
	return Location{place: Place{Storage: Register, Register: reg, Scope: scope}}
}

// ImplicitLocation returns an implicit location that holds a copy of value,
// which is in the byte order of the architecture.
func ImplicitLocation(value []byte) Location {
	p := Place{Storage: Implicit, Scope: noScope}
	if n := len(value); n > 0 && n <= 8 {
		var word [8]byte
		copy(word[:], value)
		p.small = uint8(n * 8)
		p.Address = binary.LittleEndian.Uint64(word[:])
	} else {
		p.detail = &detail{bytes: bytes.Clone(value), bits: uint64(n) * 8}
	}
	return Location{place: p}
}

// ImplicitUint64 returns an implicit location of the given size, from 1 to 64
// bits, that holds the low bits of v. It does not allocate.
func ImplicitUint64(v uint64, bits uint32, order ByteOrder) Location {
	bits = min(max(bits, 1), 64)
	return Location{place: Place{Storage: Implicit, small: uint8(bits), Address: packStream(v, bits, order), Scope: noScope}}
}

// ImplicitWord is the inverse of ImplicitUint64; ok is false for other locations.
func (l Location) ImplicitWord(order ByteOrder) (v uint64, bits uint32, ok bool) {
	p := &l.place
	if len(l.more) != 0 || p.Storage != Implicit || p.detail != nil || p.small == 0 || p.BitOffset != 0 {
		return 0, 0, false
	}
	return unpackStream(p.Address, uint32(p.small), order), uint32(p.small), true
}

// packStream lays the low n bits of v out as a stream of bits, and returns its
// bytes with the first one lowest.
func packStream(v uint64, n uint32, order ByteOrder) uint64 {
	if order == BigEndian {
		return bits.ReverseBytes64(v << (64 - n))
	}
	return v & lowMask(n)
}

// unpackStream is the inverse of packStream.
func unpackStream(word uint64, n uint32, order ByteOrder) uint64 {
	if n == 0 {
		return 0
	}
	if order == BigEndian {
		return bits.ReverseBytes64(word) >> (64 - n)
	}
	return word & lowMask(n)
}

// lowMask returns a mask of the low n bits, n at most 64.
func lowMask(n uint32) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// implicitPointerLocation returns the implicit storage of DW_OP_implicit_pointer.
func implicitPointerLocation(d *detail, space AddressSpace, scope Scope) Location {
	return Location{place: Place{Storage: ImplicitPointer, Space: space, Scope: scope, detail: d}}
}

// UndefinedLocation returns the undefined location description.
func UndefinedLocation() Location { return Location{} }

// CompositeLocation returns a complete composite of parts, in storage order.
// A size that does not fit in 64 bits is cut there; the composite is then as
// good as endless.
func CompositeLocation(parts []Part) Location {
	d := &detail{parts: slices.Clone(parts), depth: 1}
	for i := range parts {
		sum, carry := bits.Add64(d.bits, parts[i].Bits, 0)
		if carry != 0 {
			sum = ^uint64(0)
		}
		d.bits = sum
		d.depth = max(d.depth, parts[i].Location.depth()+1)
	}
	return Location{place: Place{Storage: Composite, Scope: noScope, detail: d}}
}

// UnionLocation returns the location description with the places of all locations, as an
// overlapping location list has them (A.2.5.5). Of no locations it is the undefined one.
func UnionLocation(locations ...Location) Location {
	var places []Place
	for i := range locations {
		for j := range locations[i].NumPlaces() {
			places = append(places, locations[i].Place(j))
		}
	}
	switch len(places) {
	case 0:
		return Location{}
	case 1:
		return Location{place: places[0]}
	}
	return Location{place: places[0], more: places[1:]}
}

// WithScope returns l with every place of it bound to scope. Parts of
// composites keep their own.
func (l Location) WithScope(scope Scope) Location {
	l.place.Scope = scope
	if len(l.more) > 0 {
		l.more = slices.Clone(l.more)
		for i := range l.more {
			l.more[i].Scope = scope
		}
	}
	return l
}

// NumPlaces returns the number of places that have the value; at least 1.
func (l Location) NumPlaces() int { return 1 + len(l.more) }

// Place returns place i, from 0 to NumPlaces()-1.
func (l Location) Place(i int) Place {
	if i == 0 {
		return l.place
	}
	return l.more[i-1]
}

// IsUndefined reports whether every place of l is undefined.
func (l Location) IsUndefined() bool {
	if l.place.Storage != Undefined {
		return false
	}
	for i := range l.more {
		if l.more[i].Storage != Undefined {
			return false
		}
	}
	return true
}

// MemoryAddress returns the space and byte address of l when it is a memory
// byte address location description: one place, in memory, with a bit offset
// that is a multiple of 8 (A.2.5.4.4.3).
func (l Location) MemoryAddress() (space AddressSpace, address uint64, ok bool) {
	if len(l.more) != 0 || l.place.Storage != Memory || l.place.BitOffset%8 != 0 {
		return 0, 0, false
	}
	return l.place.Space, l.place.Address + l.place.BitOffset/8, true
}

// depth returns how deep composites nest in l.
func (l *Location) depth() int {
	d := l.place.depth()
	for i := range l.more {
		d = max(d, l.more[i].depth())
	}
	return d
}

func (p *Place) depth() int {
	if p.Storage == Composite && p.detail != nil {
		return p.detail.depth
	}
	return 0
}

// isIncomplete reports whether l is an incomplete composite location
// description (A.2.5.4.4.6).
func (l *Location) isIncomplete() bool {
	return l.place.Storage == Composite && l.place.detail != nil && l.place.detail.isIncomplete
}

// Parts returns the parts of a composite place, and nil for another one.
func (p Place) Parts() []Part {
	if p.Storage != Composite || p.detail == nil {
		return nil
	}
	return slices.Clone(p.detail.parts)
}

// ImplicitBytes returns the whole storage of an implicit place, in the byte
// order of the architecture, and nil for another place. BitOffset counts from
// its start.
func (p Place) ImplicitBytes() []byte {
	switch {
	case p.Storage != Implicit:
		return nil
	case p.detail != nil:
		return bytes.Clone(p.detail.bytes)
	}
	word := binary.LittleEndian.AppendUint64(nil, p.Address)
	return word[:(p.small+7)/8]
}

// ImplicitPointer returns the target of an implicit pointer: the offset of a
// debugging information entry in .debug_info, and a displacement in bytes from
// the object that it describes. ok is false for another place.
func (p Place) ImplicitPointer() (entry uint64, displacement int64, ok bool) {
	if p.Storage != ImplicitPointer || p.detail == nil {
		return 0, 0, false
	}
	return p.detail.entry, p.detail.offset, true
}

// StorageBits returns the size of the storage of p in bits as far as p itself has it, which
// is so for implicit and composite storage. ok is false for memory and registers, whose sizes
// are the architecture's, and for the undefined storage.
func (p Place) StorageBits() (size uint64, ok bool) {
	switch {
	case p.Storage == Implicit && p.detail == nil:
		return uint64(p.small), true
	case p.Storage == Implicit, p.Storage == ImplicitPointer, p.Storage == Composite:
		if p.detail != nil {
			return p.detail.bits, true
		}
	}
	return 0, false
}

// Offset returns l with the given number of bits added to the offset of every place.
// Undefined places stay as they are. It is an error when an offset comes to lie before its
// storage or at or past the end of it (A.2.5.4.4.1); the architecture knows the ends of
// registers and of memory below 64 bits, which are checked when the location is read.
func (l Location) Offset(bits int64) (Location, error) {
	if err := l.shift(bitDisplacement(bits), nil, 64); err != nil {
		return Location{}, err
	}
	return l, nil
}

// displacement is a signed distance in bits that may exceed 64 bits: eight
// times bytes, plus bits, which is below 8.
type displacement struct {
	bytes int64
	bits  uint8
}

// String returns the displacement in bytes, or in bits where it is not whole.
func (d displacement) String() string {
	if d.bits == 0 {
		return fmt.Sprintf("%d bytes", d.bytes)
	}
	return fmt.Sprintf("%d bytes and %d bits", d.bytes, d.bits)
}

// storageSize is the size of a location storage. The size of memory in bits may exceed 64
// bits, so memory has its last byte address.
type storageSize struct {
	isMemory bool
	last     uint64 // memory: the last byte address
	bits     uint64 // otherwise: the size
}

// storageSize returns the size of a place's storage. The size of a register, and of memory in
// other spaces than the default one, is the machine's; without a machine it is not known.
// addressBits is the size of the generic type.
func (p *Place) storageSize(m Machine, addressBits uint32) (size storageSize, known bool) {
	switch {
	case p.Storage == Memory && p.Space == DefaultSpace:
		return storageSize{isMemory: true, last: lowMask(addressBits)}, true
	case p.Storage == Memory && m == nil:
		return storageSize{isMemory: true, last: ^uint64(0)}, true
	case p.Storage == Memory:
		bits, ok := m.SpaceBits(p.Space)
		return storageSize{isMemory: true, last: lowMask(bits)}, ok
	case p.Storage == Register && m == nil:
		return storageSize{}, false
	case p.Storage == Register:
		bits, ok := m.RegisterBits(p.Register)
		return storageSize{bits: uint64(bits)}, ok
	}
	bits, ok := p.StorageBits()
	return storageSize{bits: bits}, ok
}

// shift adds a distance to the offset of every place, within its storageSize.
func (l *Location) shift(distance displacement, m Machine, addressBits uint32) error {
	if err := l.place.move(distance, m, addressBits); err != nil {
		return err
	}
	if len(l.more) > 0 {
		l.more = slices.Clone(l.more) // other locations may share it
		for i := range l.more {
			if err := l.more[i].move(distance, m, addressBits); err != nil {
				return err
			}
		}
	}
	return nil
}

// move adds a distance to the offset of p.
func (p *Place) move(distance displacement, m Machine, addressBits uint32) error {
	if p.Storage == Undefined {
		return nil
	}
	if distance != (displacement{}) {
		p.narrow, p.keeps = 0, 0
	}
	limit, known := p.storageSize(m, addressBits)
	if p.Storage == Memory {
		return p.moveMemory(distance, limit, known)
	}
	// Every size is below 2^64 bits, so a displacement of 2^60 bytes is out of range or
	// brings the offset to where a smaller one would also be.
	if distance.bytes >= 1<<60 || distance.bytes < -(1<<60) {
		return fmt.Errorf("%w: offset of %v in %v storage", ErrOutOfBounds, distance, p.Storage)
	}
	delta := distance.bytes*8 + int64(distance.bits)
	offset := p.BitOffset + uint64(delta)
	if wrapped := (delta < 0) == (offset > p.BitOffset); delta != 0 && wrapped {
		return fmt.Errorf("%w: offset of %v from bit %d of %v storage", ErrOutOfBounds, distance, p.BitOffset, p.Storage)
	}
	if known && offset >= limit.bits {
		return fmt.Errorf("%w: bit %d of %v storage of %d bits", ErrOutOfBounds, offset, p.Storage, limit.bits)
	}
	p.BitOffset = offset
	return nil
}

// moveMemory adds a distance to the address of a Memory place, which keeps the carry of
// its bit offset in its address.
func (p *Place) moveMemory(distance displacement, limit storageSize, known bool) error {
	bit := p.BitOffset%8 + uint64(distance.bits)
	base, carry := bits.Add64(p.Address, p.BitOffset/8, 0)
	step := distance.bytes
	if bit >= 8 { // distance.bytes cannot be the largest integer here: it is a shifted one, or bits is 0
		step++
	}
	address := base + uint64(step)
	if wrapped := (step < 0) == (address > base); carry != 0 || step != 0 && wrapped {
		return fmt.Errorf("%w: offset of %v from address 0x%x", ErrOutOfBounds, distance, base)
	}
	if known && address > limit.last {
		return fmt.Errorf("%w: address 0x%x, the last one of the address space is 0x%x", ErrOutOfBounds, address, limit.last)
	}
	p.Address, p.BitOffset = address, bit%8
	return nil
}
