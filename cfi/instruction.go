package cfi

import "math"

// An operandKind says how an operand of an instruction is encoded, and by which
// alignment factor it is multiplied.
type operandKind uint8

const (
	noOperand      operandKind = iota
	lowDelta                   // low six bits of the opcode, code units
	delta1                     // 1 byte, code units
	delta2                     // 2 bytes
	delta4                     // 4 bytes
	delta8                     // 8 bytes
	address                    // an address as the CIE encodes it
	lowRegister                // low six bits of the opcode
	register                   // ULEB128
	offset                     // ULEB128, bytes
	factored                   // ULEB128, data units
	signedFactored             // SLEB128, data units
	space                      // ULEB128, an address space
	size                       // ULEB128, bytes
	block                      // ULEB128 length, and an expression
)

// operands are the decoded operands of one instruction, multiplied by the
// alignment factors; signed ones are reinterpreted. Of kind block it is expr.
type operands struct {
	value [3]uint64
	expr  []byte
}

// An opcode is one call frame instruction: what its operands are, and what it
// does to the row that is being built.
type opcode struct {
	name     string
	operands [3]operandKind
	apply    func(m *machine, o *operands) error
}

// opcodes are the call frame instructions by their first byte: DWARF 5, table
// 7.29; the extension, A.7.24; the GNU, SGI and LSB ones (LSB 5.0, 10.5.2); the
// one of AArch64 (DWARF for the Arm 64-bit Architecture, 4.1). A nil
// apply is an unknown instruction.
var opcodes = [256]opcode{
	0x00: {"DW_CFA_nop", kinds(), nop},
	0x01: {"DW_CFA_set_loc", kinds(address), setLoc},
	0x02: {"DW_CFA_advance_loc1", kinds(delta1), advanceLoc},
	0x03: {"DW_CFA_advance_loc2", kinds(delta2), advanceLoc},
	0x04: {"DW_CFA_advance_loc4", kinds(delta4), advanceLoc},
	0x05: {"DW_CFA_offset_extended", kinds(register, factored), offsetRule},
	0x06: {"DW_CFA_restore_extended", kinds(register), restore},
	0x07: {"DW_CFA_undefined", kinds(register), undefined},
	0x08: {"DW_CFA_same_value", kinds(register), sameValue},
	0x09: {"DW_CFA_register", kinds(register, register), registerRule},
	0x0a: {"DW_CFA_remember_state", kinds(), rememberState},
	0x0b: {"DW_CFA_restore_state", kinds(), restoreState},
	0x0c: {"DW_CFA_def_cfa", kinds(register, offset), defCFA},
	0x0d: {"DW_CFA_def_cfa_register", kinds(register), defCFARegister},
	0x0e: {"DW_CFA_def_cfa_offset", kinds(offset), defCFAOffset},
	0x0f: {"DW_CFA_def_cfa_expression", kinds(block), defCFAExpression},
	0x10: {"DW_CFA_expression", kinds(register, block), expression},
	0x11: {"DW_CFA_offset_extended_sf", kinds(register, signedFactored), offsetRule},
	0x12: {"DW_CFA_def_cfa_sf", kinds(register, signedFactored), defCFA},
	0x13: {"DW_CFA_def_cfa_offset_sf", kinds(signedFactored), defCFAOffset},
	0x14: {"DW_CFA_val_offset", kinds(register, factored), valOffset},
	0x15: {"DW_CFA_val_offset_sf", kinds(register, signedFactored), valOffset},
	0x16: {"DW_CFA_val_expression", kinds(register, block), valExpression},
	0x1d: {"DW_CFA_MIPS_advance_loc8", kinds(delta8), advanceLoc},
	0x2c: {"DW_CFA_AARCH64_negate_ra_state_with_pc", kinds(), windowSave},
	0x2d: {"DW_CFA_GNU_window_save", kinds(), windowSave},
	0x2e: {"DW_CFA_GNU_args_size", kinds(size), nop}, // matters to landing pads only
	0x2f: {"DW_CFA_GNU_negative_offset_extended", kinds(register, factored), negativeOffset},
	0x30: {"DW_CFA_LLVM_def_aspace_cfa", kinds(register, offset, space), defCFA},
	0x31: {"DW_CFA_LLVM_def_aspace_cfa_sf", kinds(register, signedFactored, space), defCFA},
}

// The instructions with an operand in the opcode.
func init() {
	for low := range 0x40 {
		opcodes[0x40|low] = opcode{"DW_CFA_advance_loc", kinds(lowDelta), advanceLoc}
		opcodes[0x80|low] = opcode{"DW_CFA_offset", kinds(lowRegister, factored), offsetRule}
		opcodes[0xc0|low] = opcode{"DW_CFA_restore", kinds(lowRegister), restore}
	}
}

func kinds(k ...operandKind) (a [3]operandKind) {
	copy(a[:], k)
	return a
}

// decode reads the operands of an instruction whose first byte is code.
func (m *machine) decode(code byte, op *opcode, o *operands) error {
	r := &m.r
	for i, kind := range op.operands {
		var v uint64
		ok := true
		switch kind {
		case noOperand:
			return r.err
		case lowDelta:
			v, ok = mulUnsigned(uint64(code&0x3f), m.cie.CodeAlignment)
		case delta1:
			v, ok = mulUnsigned(uint64(r.u8()), m.cie.CodeAlignment)
		case delta2:
			v, ok = mulUnsigned(uint64(r.u16()), m.cie.CodeAlignment)
		case delta4:
			v, ok = mulUnsigned(uint64(r.u32()), m.cie.CodeAlignment)
		case delta8:
			v, ok = mulUnsigned(r.u64(), m.cie.CodeAlignment)
		case address:
			var err error
			if v, err = m.address(); err != nil {
				return err
			}
		case lowRegister:
			v = uint64(code & 0x3f)
		case register, space, size:
			v = r.uleb()
		case offset:
			v = r.uleb()
			ok = v <= math.MaxInt64
		case factored:
			u := r.uleb()
			var s int64
			s, ok = mulSigned(int64(u), m.cie.DataAlignment)
			ok = ok && u <= math.MaxInt64
			v = uint64(s)
		case signedFactored:
			var s int64
			s, ok = mulSigned(r.sleb(), m.cie.DataAlignment)
			v = uint64(s)
		case block:
			o.expr = r.bytes(r.uleb())
			m.blocks = true
		}
		if r.err != nil {
			return r.err
		}
		if !ok {
			return ErrOverflow
		}
		o.value[i] = v
	}
	return r.err
}

func mulUnsigned(a, b uint64) (uint64, bool) {
	if a|b < 1<<32 {
		return a * b, true
	}
	p := a * b
	return p, a == 0 || p/a == b
}

func mulSigned(a, b int64) (int64, bool) {
	const half = 1 << 31
	if a >= -half && a < half && b >= -half && b < half {
		return a * b, true
	}
	p := a * b
	if a == -1 || b == -1 {
		return p, a != math.MinInt64 && b != math.MinInt64
	}
	return p, a == 0 || p/a == b
}
