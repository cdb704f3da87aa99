package x86_64

// Operations of DWARF expressions (DWARF 5, 7.7.1).
const (
	opDeref      = 0x06
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opAnd        = 0x1a
	opMinus      = 0x1c
	opPlus       = 0x22
	opPlusUconst = 0x23
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opLt         = 0x2d
	opSkip       = 0x2f
	opLit0       = 0x30
	opBreg0      = 0x70
	opBregx      = 0x92
)

// undefinedLocation is DW_OP_LLVM_undefined in the canonical dialect.
var undefinedLocation = []byte{0xe9, 0x08}

// registerPlus is DW_OP_breg: the value of a general register plus offset.
func registerPlus(register uint32, offset int64) []byte {
	return appendSleb([]byte{opBreg0 + byte(register)}, offset)
}

// loaded appends the word at the address on the stack, plus n.
func loaded(expr []byte, n int64) []byte {
	expr = append(expr, opDeref)
	switch {
	case n > 0:
		return appendUleb(append(expr, opPlusUconst), uint64(n))
	case n < 0:
		return append(appendSleb(append(expr, opConsts), n), opPlus)
	}
	return expr
}

// appendSleb and appendUleb append LEB128 numbers (DWARF 5, 7.6).
func appendSleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendUleb(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
