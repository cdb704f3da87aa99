package cfi

// Pointer encodings (LSB 5.0, 10.5.1). The low four bits are the format, the
// next three what the value is relative to.
const (
	peOmit = 0xff

	peFormat  = 0x0f
	peAbsPtr  = 0x00
	peULEB128 = 0x01
	peUData2  = 0x02
	peUData4  = 0x03
	peUData8  = 0x04
	peSigned  = 0x08 // of the size of an address
	peSLEB128 = 0x09
	peSData2  = 0x0a
	peSData4  = 0x0b
	peSData8  = 0x0c

	peApplication = 0x70
	pePCRel       = 0x10
	peTextRel     = 0x20
	peDataRel     = 0x30
	peFuncRel     = 0x40
	peAligned     = 0x50

	peIndirect = 0x80
)

// A Pointer is an encoded pointer of a CIE or FDE. The zero Pointer is none.
type Pointer struct {
	Address uint64
	// Indirect says that Address is where the pointer is, not the pointer.
	Indirect bool
	Present  bool
}

// fixedSize returns how many bytes a format takes when that does not depend on
// the value, and whether it is signed; 0 when it does, or is not a format.
func fixedSize(format byte, addressSize int) (size int, signed bool) {
	switch format {
	case peAbsPtr:
		return addressSize, false
	case peSigned:
		return addressSize, true
	case peUData2:
		return 2, false
	case peUData4:
		return 4, false
	case peUData8:
		return 8, false
	case peSData2:
		return 2, true
	case peSData4:
		return 4, true
	case peSData8:
		return 8, true
	}
	return 0, false
}

func validFormat(format byte) bool {
	size, _ := fixedSize(format, 8)
	return size != 0 || format == peULEB128 || format == peSLEB128
}

// number reads the value of a format, sign-extended where the format is signed.
func (r *reader) number(format byte, addressSize int) uint64 {
	switch format {
	case peULEB128:
		return r.uleb()
	case peSLEB128:
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

// bases are what encoded pointers are relative to, besides their own address.
type bases struct {
	section, text, data uint64
	function            uint64
	hasFunction         bool
}

// pointer reads an encoded pointer. null says that the stored value is zero,
// which stands for a null pointer whatever it is relative to. ErrPointerBase says
// that the pointer was read, but is relative to what is not known.
func (r *reader) pointer(encoding byte, addressSize int, b *bases) (p Pointer, null bool, err error) {
	format := encoding & peFormat
	if encoding == peOmit || !validFormat(format) {
		return p, false, ErrPointerEncoding
	}
	application := encoding & peApplication
	var base uint64
	unknown := false
	switch application {
	case 0:
	case pePCRel:
		base = b.section + uint64(r.pos)
	case peTextRel:
		base = b.text
		unknown = base == 0
	case peDataRel:
		base = b.data
		unknown = base == 0
	case peFuncRel:
		if !b.hasFunction {
			return p, false, ErrPointerEncoding
		}
		base = b.function
	case peAligned:
		if format != peAbsPtr {
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
	return Pointer{Address: (base + v) & mask, Indirect: encoding&peIndirect != 0, Present: true}, v&mask == 0, nil
}
