// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"math"

	"github.com/unwindd/unwindd/internal/dw"
)

// operandKind is the encoding of an operand of an instruction, with the alignment
// factor that it is multiplied by.
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

// operands are the decoded operands of one instruction, multiplied by the alignment factors;
// signed ones are reinterpreted. An operand of kind block is in expr.
type operands struct {
	value [3]uint64
	expr  []byte
}

// opcode is a call frame instruction: its operands, and its effect on
// the row that is being built.
type opcode struct {
	operands [3]operandKind
	apply    func(m *machine, o *operands) error
}

// opcodes are the call frame instructions by their first byte. A nil apply is an
// unknown instruction.
var opcodes = [256]opcode{
	dw.CFANop:                        {[3]operandKind{}, nop},
	dw.CFASetLoc:                     {[3]operandKind{address}, setLoc},
	dw.CFAAdvanceLoc1:                {[3]operandKind{delta1}, advanceLoc},
	dw.CFAAdvanceLoc2:                {[3]operandKind{delta2}, advanceLoc},
	dw.CFAAdvanceLoc4:                {[3]operandKind{delta4}, advanceLoc},
	dw.CFAOffsetExtended:             {[3]operandKind{register, factored}, offsetRule},
	dw.CFARestoreExtended:            {[3]operandKind{register}, restore},
	dw.CFAUndefined:                  {[3]operandKind{register}, undefined},
	dw.CFASameValue:                  {[3]operandKind{register}, sameValue},
	dw.CFARegister:                   {[3]operandKind{register, register}, registerRule},
	dw.CFARememberState:              {[3]operandKind{}, rememberState},
	dw.CFARestoreState:               {[3]operandKind{}, restoreState},
	dw.CFADefCFA:                     {[3]operandKind{register, offset}, defCFA},
	dw.CFADefCFARegister:             {[3]operandKind{register}, defCFARegister},
	dw.CFADefCFAOffset:               {[3]operandKind{offset}, defCFAOffset},
	dw.CFADefCFAExpression:           {[3]operandKind{block}, defCFAExpression},
	dw.CFAExpression:                 {[3]operandKind{register, block}, expression},
	dw.CFAOffsetExtendedSF:           {[3]operandKind{register, signedFactored}, offsetRule},
	dw.CFADefCFASF:                   {[3]operandKind{register, signedFactored}, defCFA},
	dw.CFADefCFAOffsetSF:             {[3]operandKind{signedFactored}, defCFAOffset},
	dw.CFAValOffset:                  {[3]operandKind{register, factored}, valOffset},
	dw.CFAValOffsetSF:                {[3]operandKind{register, signedFactored}, valOffset},
	dw.CFAValExpression:              {[3]operandKind{register, block}, valExpression},
	dw.CFAMIPSAdvanceLoc8:            {[3]operandKind{delta8}, advanceLoc},
	dw.CFAAARCH64NegateRAStateWithPC: {[3]operandKind{}, windowSave},
	dw.CFAGNUWindowSave:              {[3]operandKind{}, windowSave},
	dw.CFAGNUArgsSize:                {[3]operandKind{size}, nop}, // matters to landing pads only
	dw.CFAGNUNegativeOffsetExtended:  {[3]operandKind{register, factored}, negativeOffset},
	dw.CFALLVMDefAspaceCFA:           {[3]operandKind{register, offset, space}, defCFA},
	dw.CFALLVMDefAspaceCFASF:         {[3]operandKind{register, signedFactored, space}, defCFA},
}

// The instructions with an operand in the opcode.
func init() {
	for low := range dw.CFALowBits + 1 {
		opcodes[dw.CFAAdvanceLoc|low] = opcode{kinds(lowDelta), advanceLoc}
		opcodes[dw.CFAOffset|low] = opcode{kinds(lowRegister, factored), offsetRule}
		opcodes[dw.CFARestore|low] = opcode{kinds(lowRegister), restore}
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
			v, ok = mulUnsigned(uint64(code&dw.CFALowBits), m.cie.CodeAlignment)
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
			v = uint64(code & dw.CFALowBits)
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
