// SPDX-License-Identifier: Apache-2.0

package cfi

import "github.com/unwindd/unwindd/internal/ehpe"

// Pointer is an encoded pointer of a CIE or FDE. The zero Pointer is an absent one.
type Pointer struct {
	Address uint64 // virtual
	// Indirect means that Address is the address of the pointer, not the pointer.
	Indirect bool
	Present  bool // false of the zero Pointer
}

// fixedSize returns how many bytes a format takes when that does not depend on
// the value, and whether it is signed; 0 when it does, or is not a format.
func fixedSize(format byte, addressSize int) (size int, signed bool) {
	switch format {
	case ehpe.AbsPtr:
		return addressSize, false
	case ehpe.Signed:
		return addressSize, true
	case ehpe.UData2:
		return 2, false
	case ehpe.UData4:
		return 4, false
	case ehpe.UData8:
		return 8, false
	case ehpe.SData2:
		return 2, true
	case ehpe.SData4:
		return 4, true
	case ehpe.SData8:
		return 8, true
	}
	return 0, false
}

func isValidFormat(format byte) bool {
	size, _ := fixedSize(format, 8)
	return size != 0 || format == ehpe.ULEB128 || format == ehpe.SLEB128
}

// number reads the value of a format, sign-extended where the format is signed.
func (r *reader) number(format byte, addressSize int) uint64 {
	switch format {
	case ehpe.ULEB128:
		return r.uleb()
	case ehpe.SLEB128:
		return uint64(r.sleb())
	}
	size, signed := fixedSize(format, addressSize)
	v := r.word(size)
	if signed {
		v = extend(v, size)
	}
	return v
}

func extend(v uint64, size int) uint64 {
	shift := 64 - 8*uint(size)
	return uint64(int64(v<<shift) >> shift)
}

// addressMask has the bits of an address of that many bytes.
func addressMask(size int) uint64 { return ^uint64(0) >> (64 - 8*uint(size)) }

// bases are the addresses that encoded pointers are relative to, besides their own.
type bases struct {
	section, text, data uint64
	function            uint64
	hasFunction         bool
}

// pointer reads an encoded pointer. null means that the stored value is zero, which stands
// for a null pointer with any base. ErrPointerBase means that the pointer was read, but is
// relative to an unknown base.
func (r *reader) pointer(encoding byte, addressSize int, b *bases) (p Pointer, null bool, err error) {
	format := encoding & ehpe.FormatMask
	if encoding == ehpe.Omit || !isValidFormat(format) {
		return p, false, ErrPointerEncoding
	}
	application := encoding & ehpe.ApplicationMask
	var base uint64
	unknown := false
	switch application {
	case ehpe.Absolute:
	case ehpe.PCRel:
		base = b.section + uint64(r.pos)
	case ehpe.TextRel:
		base = b.text
		unknown = base == 0
	case ehpe.DataRel:
		base = b.data
		unknown = base == 0
	case ehpe.FuncRel:
		if !b.hasFunction {
			return p, false, ErrPointerEncoding
		}
		base = b.function
	case ehpe.Aligned:
		if format != ehpe.AbsPtr {
			return p, false, ErrPointerEncoding
		}
		r.bytes(-(b.section + uint64(r.pos)) & uint64(addressSize-1))
	default:
		return p, false, ErrPointerEncoding
	}
	v := r.number(format, addressSize)
	if r.err != nil {
		return p, false, r.err
	}
	mask := addressMask(addressSize)
	if unknown && v&mask != 0 {
		return p, false, ErrPointerBase
	}
	return Pointer{Address: (base + v) & mask, Indirect: encoding&ehpe.Indirect != 0, Present: true}, v&mask == 0, nil
}
