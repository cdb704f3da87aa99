// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/sdk/reloc"
)

// maxLEB128 bounds the bytes of a LEB128 number that is relocated: as many as 64 bits need.
const maxLEB128 = 10

// lengthLEB128 returns how many bytes the LEB128 number has that b begins with; 0
// where it does not end.
func lengthLEB128(b []byte) uint64 {
	for i := range b[:min(len(b), maxLEB128)] {
		if b[i] < 0x80 {
			return uint64(i) + 1
		}
	}
	return 0
}

// A relocatedField is a field that a relocation changes.
type relocatedField struct {
	fields
	field reloc.Field
}

// apply writes the result of a relocation of a symbol's value with its addend, to which inPlace adds
// the field's old value.
func (f relocatedField) apply(r *reloc.Entry, value, place uint64, inPlace bool) error {
	old, err := f.value(r)
	if err != nil {
		return err
	}
	if inPlace {
		value += old
	}
	switch r.Kind {
	case reloc.Absolute:
		return f.putWhole(r.Size, value)
	case reloc.Relative:
		return f.putWhole(r.Size, value-place)
	case reloc.RelativePA:
		return f.putWhole(r.Size, value-place-8)
	case reloc.Set:
		return f.putLow(r, value)
	case reloc.Add:
		return f.putLow(r, old+value)
	case reloc.AddRelative:
		return f.putLow(r, old+value-place)
	case reloc.Subtract:
		return f.putLow(r, old-value)
	}
	return fmt.Errorf("kind %d is not known", r.Kind)
}

// value returns the field's value; whole bytes are sign-extended.
func (f relocatedField) value(r *reloc.Entry) (uint64, error) {
	switch f.field {
	case reloc.Low6:
		return uint64(f.b[0] & low6), nil
	case reloc.ULEB128:
		value := uint64(0)
		for i, b := range f.b {
			value |= uint64(b&0x7f) << (7 * i)
		}
		return value, nil
	}
	return f.signed(r.Size)
}

// low6 are the bits of reloc.Low6.
const low6 = 0x3f

// putLow writes the low bits of value.
func (f relocatedField) putLow(r *reloc.Entry, value uint64) error {
	switch f.field {
	case reloc.Low6:
		f.b[0] = f.b[0]&^low6 | byte(value)&low6
	case reloc.ULEB128:
		for i := range f.b {
			f.b[i] = f.b[i]&0x80 | byte(value>>(7*i))&0x7f
		}
	default:
		return f.put(r.Size, value)
	}
	return nil
}

// putWhole writes value. One that fits neither as a signed nor as an unsigned
// number is an error, unless the field has the size of an address: those wrap.
func (f relocatedField) putWhole(size uint8, value uint64) error {
	bits := uint(size) * 8
	if address := bits >= 64 || (bits == 32 && !f.wide); !address {
		unsigned := value <= math.MaxUint64>>(64-bits)
		negative := int64(value) < 0 && int64(value) >= -1<<(bits-1)
		if !unsigned && !negative {
			return fmt.Errorf("value %#x does not fit %d bytes", value, size)
		}
	}
	return f.put(size, value)
}

// signed reads whole bytes, sign-extended.
func (f fields) signed(size uint8) (uint64, error) {
	switch size {
	case 1:
		return uint64(int64(int8(f.b[0]))), nil
	case 2:
		return uint64(int64(int16(f.u16(0)))), nil
	case 4:
		return uint64(int64(int32(f.u32(0)))), nil
	case 8:
		return f.u64(0), nil
	}
	return 0, fmt.Errorf("size %d, expected 1, 2, 4 or 8", size)
}

// put writes the low bytes of value.
func (f relocatedField) put(size uint8, value uint64) error {
	switch size {
	case 1:
		f.b[0] = byte(value)
	case 2:
		f.order.PutUint16(f.b, uint16(value))
	case 4:
		f.order.PutUint32(f.b, uint32(value))
	case 8:
		f.order.PutUint64(f.b, value)
	default:
		return fmt.Errorf("size %d, expected 1, 2, 4 or 8", size)
	}
	return nil
}
