// SPDX-License-Identifier: Apache-2.0

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

// The call frame instructions DW_CFA_* that have an operand in the low six bits of the
// opcode. In every other opcode the high two bits are zero.
const (
	cfaHighBits   = 0xc0
	cfaLowBits    = 0x3f
	cfaAdvanceLoc = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0
)

// The other call frame instructions.
const (
	cfaNop                        = 0x00
	cfaSetLoc                     = 0x01
	cfaAdvanceLoc1                = 0x02
	cfaAdvanceLoc2                = 0x03
	cfaAdvanceLoc4                = 0x04
	cfaOffsetExtended             = 0x05
	cfaRestoreExtended            = 0x06
	cfaUndefined                  = 0x07
	cfaSameValue                  = 0x08
	cfaRegister                   = 0x09
	cfaRememberState              = 0x0a
	cfaRestoreState               = 0x0b
	cfaDefCFA                     = 0x0c
	cfaDefCFARegister             = 0x0d
	cfaDefCFAOffset               = 0x0e
	cfaDefCFAExpression           = 0x0f
	cfaExpression                 = 0x10
	cfaOffsetExtendedSF           = 0x11
	cfaDefCFASF                   = 0x12
	cfaDefCFAOffsetSF             = 0x13
	cfaValOffset                  = 0x14
	cfaValOffsetSF                = 0x15
	cfaValExpression              = 0x16
	cfaMIPSAdvanceLoc8            = 0x1d
	cfaAARCH64NegateRAStateWithPC = 0x2c
	cfaGNUWindowSave              = 0x2d
	cfaGNUArgsSize                = 0x2e
	cfaGNUNegativeOffsetExtended  = 0x2f
	cfaLLVMDefAspaceCFA           = 0x30
	cfaLLVMDefAspaceCFASF         = 0x31
)

// opcodes are the call frame instructions by their first byte: DWARF 5, table
// 7.29; the extension, A.7.24; the GNU, SGI and LSB ones (LSB 5.0, 10.5.2); the
// one of AArch64 (DWARF for the Arm 64-bit Architecture, 4.1). A nil
// apply is an unknown instruction.
var opcodes = [256]opcode{
	cfaNop:                        {"DW_CFA_nop", [3]operandKind{}, nop},
	cfaSetLoc:                     {"DW_CFA_set_loc", [3]operandKind{address}, setLoc},
	cfaAdvanceLoc1:                {"DW_CFA_advance_loc1", [3]operandKind{delta1}, advanceLoc},
	cfaAdvanceLoc2:                {"DW_CFA_advance_loc2", [3]operandKind{delta2}, advanceLoc},
	cfaAdvanceLoc4:                {"DW_CFA_advance_loc4", [3]operandKind{delta4}, advanceLoc},
	cfaOffsetExtended:             {"DW_CFA_offset_extended", [3]operandKind{register, factored}, offsetRule},
	cfaRestoreExtended:            {"DW_CFA_restore_extended", [3]operandKind{register}, restore},
	cfaUndefined:                  {"DW_CFA_undefined", [3]operandKind{register}, undefined},
	cfaSameValue:                  {"DW_CFA_same_value", [3]operandKind{register}, sameValue},
	cfaRegister:                   {"DW_CFA_register", [3]operandKind{register, register}, registerRule},
	cfaRememberState:              {"DW_CFA_remember_state", [3]operandKind{}, rememberState},
	cfaRestoreState:               {"DW_CFA_restore_state", [3]operandKind{}, restoreState},
	cfaDefCFA:                     {"DW_CFA_def_cfa", [3]operandKind{register, offset}, defCFA},
	cfaDefCFARegister:             {"DW_CFA_def_cfa_register", [3]operandKind{register}, defCFARegister},
	cfaDefCFAOffset:               {"DW_CFA_def_cfa_offset", [3]operandKind{offset}, defCFAOffset},
	cfaDefCFAExpression:           {"DW_CFA_def_cfa_expression", [3]operandKind{block}, defCFAExpression},
	cfaExpression:                 {"DW_CFA_expression", [3]operandKind{register, block}, expression},
	cfaOffsetExtendedSF:           {"DW_CFA_offset_extended_sf", [3]operandKind{register, signedFactored}, offsetRule},
	cfaDefCFASF:                   {"DW_CFA_def_cfa_sf", [3]operandKind{register, signedFactored}, defCFA},
	cfaDefCFAOffsetSF:             {"DW_CFA_def_cfa_offset_sf", [3]operandKind{signedFactored}, defCFAOffset},
	cfaValOffset:                  {"DW_CFA_val_offset", [3]operandKind{register, factored}, valOffset},
	cfaValOffsetSF:                {"DW_CFA_val_offset_sf", [3]operandKind{register, signedFactored}, valOffset},
	cfaValExpression:              {"DW_CFA_val_expression", [3]operandKind{register, block}, valExpression},
	cfaMIPSAdvanceLoc8:            {"DW_CFA_MIPS_advance_loc8", [3]operandKind{delta8}, advanceLoc},
	cfaAARCH64NegateRAStateWithPC: {"DW_CFA_AARCH64_negate_ra_state_with_pc", [3]operandKind{}, windowSave},
	cfaGNUWindowSave:              {"DW_CFA_GNU_window_save", [3]operandKind{}, windowSave},
	cfaGNUArgsSize:                {"DW_CFA_GNU_args_size", [3]operandKind{size}, nop}, // matters to landing pads only
	cfaGNUNegativeOffsetExtended:  {"DW_CFA_GNU_negative_offset_extended", [3]operandKind{register, factored}, negativeOffset},
	cfaLLVMDefAspaceCFA:           {"DW_CFA_LLVM_def_aspace_cfa", [3]operandKind{register, offset, space}, defCFA},
	cfaLLVMDefAspaceCFASF:         {"DW_CFA_LLVM_def_aspace_cfa_sf", [3]operandKind{register, signedFactored, space}, defCFA},
}

// The instructions with an operand in the opcode.
func init() {
	for low := range cfaLowBits + 1 {
		opcodes[cfaAdvanceLoc|low] = opcode{"DW_CFA_advance_loc", kinds(lowDelta), advanceLoc}
		opcodes[cfaOffset|low] = opcode{"DW_CFA_offset", kinds(lowRegister, factored), offsetRule}
		opcodes[cfaRestore|low] = opcode{"DW_CFA_restore", kinds(lowRegister), restore}
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
			v, ok = mulUnsigned(uint64(code&cfaLowBits), m.cie.CodeAlignment)
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
			v = uint64(code & cfaLowBits)
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
