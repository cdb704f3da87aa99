package amdgpu

// Operations of expressions, in the canonical dialect.
const (
	opConsts      = 0x11
	opDup         = 0x12
	opDrop        = 0x13
	opOver        = 0x14
	opPick        = 0x15
	opSwap        = 0x16
	opAnd         = 0x1a
	opMinus       = 0x1c
	opOr          = 0x21
	opPlus        = 0x22
	opPlusUconst  = 0x23
	opShl         = 0x24
	opShr         = 0x25
	opBra         = 0x28
	opSkip        = 0x2f
	opLit0        = 0x30
	opRegx        = 0x90
	opPiece       = 0x93
	opDerefSize   = 0x94
	opStackValue  = 0x9f
	opUser        = 0xe9
	userForm      = 0x02 // DW_OP_LLVM_form_aspace_address
	userOffset    = 0x04 // DW_OP_LLVM_offset
	userOffsetBy  = 0x05 // DW_OP_LLVM_offset_uconst
	userEntryReg  = 0x07 // DW_OP_LLVM_call_frame_entry_reg
	userUndefined = 0x08 // DW_OP_LLVM_undefined
	userSelect    = 0x0c // DW_OP_LLVM_select_bit_piece
)

// An expression is written operation by operation. depth is how many entries lie
// above the CFA, which is there to begin with.
type expression struct {
	code  []byte
	depth int
}

func uleb(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// op writes an operation after which there are change more entries.
func (e *expression) op(change int, code ...byte) {
	e.code = append(e.code, code...)
	e.depth += change
}

// number pushes a constant.
func (e *expression) number(n int64) {
	if n >= 0 && n < 32 {
		e.op(1, opLit0+byte(n))
		return
	}
	e.code = sleb(append(e.code, opConsts), n)
	e.depth++
}

// register pushes the location of a register.
func (e *expression) register(dwarf uint64) {
	e.code = uleb(append(e.code, opRegx), dwarf)
	e.depth++
}

// cfa pushes the CFA once more.
func (e *expression) cfa() {
	if e.depth == 0 {
		e.op(1, opDup)
		return
	}
	e.op(1, opPick, byte(e.depth))
}

// offset moves a location by bytes.
func (e *expression) offset(n int64) {
	switch {
	case n == 0:
	case n > 0:
		e.code = uleb(append(e.code, opUser, userOffsetBy), uint64(n))
	default:
		e.number(n)
		e.op(-1, opUser, userOffset)
	}
}

// value replaces a location by what it holds in a number of bytes.
func (e *expression) value(bytes byte) { e.op(0, opDerefSize, bytes) }

// piece adds a location to the composite below it, or begins one.
func (e *expression) piece(bytes byte, first bool) {
	e.op(0, opPiece, bytes)
	if !first {
		e.depth--
	}
}
